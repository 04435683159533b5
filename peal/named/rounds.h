// Moves the messages of an Agreement between the ranks.
#pragma once

#include <vector>

#include "peal/group/process_group.h"
#include "peal/named/agreement.h"

namespace peal::named {

/// One round: the decisions of all ranks, the same on all ranks. Waits without a limit until all
/// ranks enter the round.
/// Order: collective.
/// Errors: those of the operations.
/// Cost: an all_reduce of 8 bytes and 24 for each 64 remembered operations. If a rank has requests
///   that are not remembered: also an all_gather of 512 bytes, and a second one if the requests
///   of a rank are longer.
std::vector<Decision> run_round(ProcessGroup& group, Agreement& agreement);

}  // namespace peal::named
