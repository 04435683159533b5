// How many threads this process has. A fork copies only one.
#pragma once

#include "peal/base/clock.h"

namespace peal {

/// The number of threads of this process, from /proc; 1 if /proc cannot be read.
int thread_count();

/// Whether this process has one thread. A thread that has been joined is still counted for a
/// moment. So the call waits for the end of other threads until the deadline.
bool has_one_thread(Deadline deadline);

}  // namespace peal
