// A barrier that tells who did not come. Made of sends and receives, so it works over every
// backend.
#pragma once

#include <string>

#include "peal/group/backend.h"

namespace peal {

/// Returns when all ranks have called it.
/// Order: collective. Its messages have tags that users cannot give, so other sends and receives go
///   on beside it.
/// Threads: any, one at a time for a group.
/// Errors, each of which ends the group: timeout, where rank 0 misses ranks when `timeout` has
///   passed since its call (it names them all, to all), or a rank misses rank 0 as long after its
///   own; and what the backend's sends and receives end with.
/// Cost: 3·(n-1) messages of one byte, of which rank 0 sends two to each and gets one from each.
/// Source: the field's; torch.distributed.monitored_barrier does the same job.
void monitored_barrier(Backend& backend, const std::string& group, Timeout timeout);

}  // namespace peal
