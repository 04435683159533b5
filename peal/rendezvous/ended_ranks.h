// Finds ranks whose processes have ended, so that others stop waiting for them. There are two
// sources: the launcher's records (observe/end_file.h) and last wills in the job's store. Waiting
// ranks check them regularly.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "peal/base/units.h"
#include "peal/observe/end_file.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// How often a waiting rank checks.
inline constexpr auto kLookForEndsEvery = std::chrono::milliseconds(200);

/// Leaves a last will in the job's store. The store publishes it when this process has ended, in
/// any way, or has left all groups. `process` is for messages: "process 7 on b". Errors: of the
/// store.
void set_end_will(store::Store& store, Rank rank, const std::string& process);
/// Throws Error(peer_lost) if the last will of one of `ranks` is published: "rank 2 (process 7 on
/// b) ended, or left all groups, before it <what>". `ranks` are ranks of the world.
/// Errors: of the store. Cost: one request for each rank.
void check_ends(store::Store& store, std::span<const Rank> ranks, std::string_view what);

/// The launcher's records, in files. A value.
class EndedRanks final {
 public:
  explicit EndedRanks(observe::EndPlace place) : place_(std::move(place)) {}

  const observe::EndPlace& place() const { return place_; }
  bool are_noted() const { return place_.is_any(); }
  /// Throws Error(peer_lost) if one of `ranks` has ended: "rank 2 (pid 77) was killed by SIGKILL
  /// before it <what>". `ranks` are ranks of the world. Cost: one open() for each rank.
  void check(std::span<const Rank> ranks, std::string_view what) const;

 private:
  observe::EndPlace place_;
};

}  // namespace peal::rendezvous
