// Checks that all ranks have the same model. DistributedDataParallel and ZeroRedundancyOptimizer
// call it before they send data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"

namespace peal::train {

/// For the error: "ranks do not have the same <what>: ...; <advice>".
struct Subject {
  std::string_view what;
  std::string_view advice;
};

/// Returns if every rank passes the same lines, in the same order.
/// Order: collective.
/// Errors: mismatch, with the same text on every rank: the first line that differs, and both sides.
///   Those of the operations; each operation has the timeout `timeout`.
/// Cost: 2 small operations and a broadcast of the lines; 2 more small broadcasts if lines differ.
void require_agreement(ProcessGroup& group,
                       const Subject& subject,
                       const std::vector<std::string>& lines,
                       Timeout timeout = kGroupTimeout);

}  // namespace peal::train
