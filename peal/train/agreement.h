// Whether all ranks mean the same model. Asked by DistributedDataParallel before anything is sent.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"

namespace peal::train {

/// Returns if every rank gives the same lines, in the same order.
/// Order: collective.
/// Errors: mismatch, on every rank the same: `what`, the first line that differs, and both sides.
/// Those of the operations, each of which takes at most `timeout`.
/// Cost: 2 small operations and a broadcast of the lines; 2 small broadcasts more where they
/// differ.
void require_agreement(ProcessGroup& group,
                       std::string_view what,
                       const std::vector<std::string>& lines,
                       Timeout timeout = kGroupTimeout);

}  // namespace peal::train
