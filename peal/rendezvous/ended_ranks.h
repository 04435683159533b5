// Ranks that will not come to where others wait for them, since their processes have ended: as
// whoever started them notes it (observe/end_file.h), or as they have willed it in the job's store.
// Looked at now and then by those who wait.
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

/// How often who waits looks.
inline constexpr auto kLookForEndsEvery = std::chrono::milliseconds(200);

/// From here on it is in the job's store when this process has ended, however that comes, or has
/// left all groups. `who`, for messages: "process 7 on b". Errors: of the store.
void will_end(store::Store& store, Rank rank, const std::string& who);
/// Throws Error(peer_lost) if one of those has ended so: "rank 2 (process 7 on b) ended before it
/// <what>". Ranks of the world. Errors: of the store. Cost: a request for each.
void check_ends(store::Store& store, std::span<const Rank> ranks, std::string_view what);

/// As noted in files. A value.
class EndedRanks final {
 public:
  explicit EndedRanks(observe::EndPlace place) : place_(std::move(place)) {}

  bool are_noted() const { return place_.is_any(); }
  /// Throws Error(peer_lost) if one of those has ended: "rank 2 (pid 77) was killed by SIGKILL
  /// before it <what>". Ranks of the world. Cost: an open() for each.
  void check(std::span<const Rank> ranks, std::string_view what) const;

 private:
  observe::EndPlace place_;
};

}  // namespace peal::rendezvous
