// How Python waits for a Work: with an ear for signals. Used by both extension modules.
#pragma once

#include "peal/base/clock.h"
#include "peal/group/work.h"

namespace peal::python {

/// Returns when it has ended; throws what it ended with, or Error(timeout) if it has not ended
/// within `timeout`, after which it goes on. Signals interrupt it (signals.h). Without the GIL.
void wait_for(Work& work, Timeout timeout = kGroupTimeout);

}  // namespace peal::python
