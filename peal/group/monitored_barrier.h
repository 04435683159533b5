// A barrier that names the missing ranks. It uses only sends and receives, so it works over every
// backend.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "peal/base/error.h"
#include "peal/base/units.h"
#include "peal/group/backend.h"

namespace peal {

/// The Error(timeout) of a rank that has waited for missing ranks.
class RanksMissing final : public Error {
 public:
  RanksMissing(const std::string& message, std::vector<Rank> ranks)
      : Error(ErrorKind::kTimeout, message, {.operation = "monitored_barrier"}),
        ranks_(std::move(ranks)) {}

  /// The missing ranks, of the group and in order; at least one.
  const std::vector<Rank>& ranks() const { return ranks_; }

 private:
  std::vector<Rank> ranks_;
};

/// Returns when all ranks have called it.
/// Order: collective. Its messages have tags that users cannot give, so other sends and receives
///   may run at the same time.
/// Threads: any, one at a time for a group.
/// Errors, each of which ends the group: timeout, if ranks are missing on rank 0 when `timeout` has
///   passed since its call (rank 0 names them to all ranks); timeout, if rank 0 is missing on a
///   rank for as long after that rank's call. Where ranks are missing, the error is RanksMissing.
///   Also the errors of the backend's sends and receives.
/// Cost: 3·(n-1) messages of one byte; rank 0 sends two to each rank and receives one from each.
/// Source: common practice; torch.distributed.monitored_barrier does the same.
void monitored_barrier(Backend& backend, const std::string& group, Timeout timeout);

}  // namespace peal
