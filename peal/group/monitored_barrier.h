// A barrier that tells who did not come. Made of sends and receives, so it works over every
// backend.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "peal/base/error.h"
#include "peal/base/units.h"
#include "peal/group/backend.h"

namespace peal {

/// The Error(timeout) of a rank that has missed others.
class RanksMissing final : public Error {
 public:
  RanksMissing(const std::string& message, std::vector<Rank> ranks)
      : Error(ErrorKind::kTimeout, message), ranks_(std::move(ranks)) {}

  /// The missing ranks, of the group and in order; at least one.
  const std::vector<Rank>& ranks() const { return ranks_; }

 private:
  std::vector<Rank> ranks_;
};

/// Returns when all ranks have called it.
/// Order: collective. Its messages have tags that users cannot give, so other sends and receives go
///   on beside it.
/// Threads: any, one at a time for a group.
/// Errors, each of which ends the group: timeout, where rank 0 misses ranks when `timeout` has
///   passed since its call (it names them all, to all), or a rank misses rank 0 as long after its
///   own, and on that rank RanksMissing; and what the backend's sends and receives end with.
/// Cost: 3·(n-1) messages of one byte, of which rank 0 sends two to each and gets one from each.
/// Source: the field's; torch.distributed.monitored_barrier does the same job.
void monitored_barrier(Backend& backend, const std::string& group, Timeout timeout);

}  // namespace peal
