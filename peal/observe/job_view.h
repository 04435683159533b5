// The records of a job's ranks, side by side: how far each rank has come in each group, which
// operation it has not finished, and which ranks it waits for. `diagnose` (why.h) queries it.
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

/// All that is known of a rank. A null pointer means unknown.
struct RankView {
  Rank rank = 0;
  const Flight* flight = nullptr;
  const RankEnd* end = nullptr;
};

/// Whether the process of the rank was stopped by a signal when it was last checked.
inline bool was_stopped(const RankView& view) {
  using State = RankEnd::State;
  return view.end != nullptr &&
         (view.end->state == State::kEndedWhileStopped || view.end->state == State::kStopped);
}

/// A collective. It has the same sequence number on all ranks of its group.
struct CollectiveId {
  std::string group;
  std::uint64_t sequence = 0;

  friend auto operator<=>(const CollectiveId&, const CollectiveId&) = default;
};

/// A group as its ranks have recorded it.
struct GroupView {
  std::vector<Rank> ranks;
  /// By sequence number, then by rank: the collective as each rank recorded it.
  std::map<std::uint64_t, std::map<Rank, const FlightOperation*>> collectives;
};

/// Borrows the flights and ends.
class JobView final {
 public:
  JobView(std::span<const Flight> flights, std::span<const RankEnd> ends);

  /// All ranks with a record or an end, ascending.
  const std::vector<RankView>& ranks() const { return ranks_; }
  RankView at(Rank rank) const;
  const std::map<std::string, GroupView>& groups() const { return groups_; }

  /// The operation that the rank is or was in: the first collective that it has not finished, else
  /// the first unfinished message. Null if all its operations are finished. Operations of
  /// background groups do not count, here and in `last_finished`.
  const FlightOperation* unfinished(Rank rank) const;
  /// The operation that the rank finished last; null if it has finished no operation.
  const FlightOperation* last_finished(Rank rank) const;

  /// The ranks that the unfinished operation of `rank` waits for, ascending. For a collective: the
  /// ranks that have not entered it, or, if all have, the last rank that `rank` waited for. For a
  /// message: the peer.
  std::vector<Rank> waits_on(Rank rank) const;
  /// The ranks whose unfinished operation waits for `rank`, ascending.
  std::vector<Rank> waiters_of(Rank rank) const;
  /// The ranks that are in the same unfinished operation as `rank`, including `rank`, ascending.
  std::vector<Rank> companions_of(Rank rank) const;

 private:
  std::optional<CollectiveId> id_of(const Flight& flight, const FlightOperation& operation) const;
  /// The sequence number of the last collective of the group that the rank has entered; 0 if the
  /// rank has entered none. Nothing if the rank left no record.
  std::optional<std::uint64_t> last_entered(Rank rank, const std::string& group) const;

  std::vector<RankView> ranks_;
  std::map<std::string, GroupView> groups_;
  std::map<std::string, std::map<Rank, std::uint64_t>> last_entered_;
};

}  // namespace peal::observe
