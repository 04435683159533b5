// The records of a job's ranks, side by side: how far each has come in each group, what it has not
// finished, and for whom it waits. What `diagnose` (why.h) asks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "peal/observe/flight.h"
#include "peal/observe/rank_end.h"

namespace peal::observe {

/// All that is known of a rank; null where it is not.
struct RankView {
  Rank rank = 0;
  const Flight* flight = nullptr;
  const RankEnd* end = nullptr;
};

/// Whether its process was stopped when it was last looked at.
inline bool stood_still(const RankView& view) {
  using Fate = RankEnd::Fate;
  return view.end != nullptr &&
         (view.end->fate == Fate::kStopped || view.end->fate == Fate::kStandsStill);
}

/// A collective, which has the same number on all ranks of its group.
struct CollectiveId {
  std::string group;
  std::uint64_t sequence = 0;

  friend auto operator<=>(const CollectiveId&, const CollectiveId&) = default;
};

/// A group as its ranks have recorded it.
struct GroupView {
  std::vector<Rank> ranks;
  /// By number, then by rank: what each rank says that the collective is.
  std::map<std::uint64_t, std::map<Rank, const FlightOperation*>> collectives;
};

/// Borrows the flights and ends.
class JobView final {
 public:
  JobView(std::span<const Flight> flights, std::span<const RankEnd> ends);

  /// Those of whom anything is known, in order.
  const std::vector<RankView>& ranks() const { return ranks_; }
  RankView at(Rank rank) const;
  const std::map<std::string, GroupView>& groups() const { return groups_; }

  /// What the rank is, or was, in the middle of: the first collective that it has not finished, or
  /// else the first message; null if there is none.
  const FlightOperation* unfinished(Rank rank) const;
  /// The latest that it has finished; null if there is none.
  const FlightOperation* last_finished(Rank rank) const;

  /// The ranks without which what `rank` is in the middle of cannot end: those that have not come
  /// to the collective; if all have, the one for which it waited; the other half of a message.
  /// Rising.
  std::vector<Rank> waits_on(Rank rank) const;
  /// The ranks that are in the middle of something which cannot end without `rank`. Rising.
  std::vector<Rank> waiters_of(Rank rank) const;
  /// The ranks that are in the middle of the same operation as `rank`, itself included. Rising.
  std::vector<Rank> companions_of(Rank rank) const;

 private:
  std::optional<CollectiveId> id_of(const Flight& flight, const FlightOperation& operation) const;
  /// The number of the last collective of the group that the rank has entered; 0: none. Nothing if
  /// it left no record.
  std::optional<std::uint64_t> last_entered(Rank rank, const std::string& group) const;

  std::vector<RankView> ranks_;
  std::map<std::string, GroupView> groups_;
  std::map<std::string, std::map<Rank, std::uint64_t>> last_entered_;
};

}  // namespace peal::observe
