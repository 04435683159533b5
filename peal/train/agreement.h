// Whether all ranks mean the same model. Asked by DistributedDataParallel before anything is sent.
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

/// Returns if every rank gives the same lines, in the same order.
/// Order: collective.
/// Errors: mismatch, on every rank the same, with the first line that differs and both sides. Those
/// of the operations, each of which takes at most `timeout`.
/// Cost: 2 small operations and a broadcast of the lines; 2 small broadcasts more where they
/// differ.
void require_agreement(ProcessGroup& group,
                       const Subject& subject,
                       const std::vector<std::string>& lines,
                       Timeout timeout = kGroupTimeout);

}  // namespace peal::train
