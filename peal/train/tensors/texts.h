// Texts of ranks, such as names and descriptions of tensors. Used by the checks and checkpoints of
// train/.
#pragma once

#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/group/process_group.h"

namespace peal::train {

/// The root's text, on every rank.
/// Order: collective. Errors: those of broadcast. Cost: 2 broadcasts.
std::string broadcast_text(ProcessGroup& group,
                           const std::string& text,
                           Rank root,
                           Timeout timeout = kGroupTimeout);

/// The text of each rank, by rank, on every rank.
/// Order: collective. Errors: those of all_gather. Cost: 2 all_gathers.
std::vector<std::string> gather_texts(ProcessGroup& group,
                                      const std::string& text,
                                      Timeout timeout = kGroupTimeout);

}  // namespace peal::train
