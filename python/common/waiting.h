// How Python waits for a Work: with an ear for signals. Used by both extension modules.
#pragma once

#include <functional>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"
#include "peal/group/work.h"

namespace peal::python {

/// Returns when it has ended; throws what it ended with, or Error(timeout) if it has not ended
/// within `timeout`, after which it goes on. Signals interrupt it (signals.h). Without the GIL.
void wait_for(Work& work, Timeout timeout = kGroupTimeout);

/// Waits until it has ended, however, or until the deadline; a signal that interrupts it aborts the
/// group (signals.h). Returns whether it has ended.
bool see_it_end(ProcessGroup& group, Work& work, Deadline deadline = Deadline(TimePoint::max()));

/// Work::when_completed, for what may run Python: see `let_go` in leaving.h.
void when_completed(Work& work, std::function<void()> then);

/// The same for what must live until then. Where no thread can be started that would call it, it is
/// never called and never freed, since the operation may still use what it holds.
void keep_until_completed(Work& work, std::function<void()> then) noexcept;

}  // namespace peal::python
