// A barrier that tells who did not come. Made of sends and receives, so it works over every
// backend.
#pragma once

#include <string>

#include "peal/group/backend.h"

namespace peal {

/// Returns when all ranks have called it. At the timeout rank 0 ends the group, on all ranks, with
/// an Error(timeout) that names every rank that did not come. Source: the field's;
/// torch.distributed.monitored_barrier does the same job.
void monitored_barrier(Backend& backend, const std::string& group, Timeout timeout);

}  // namespace peal
