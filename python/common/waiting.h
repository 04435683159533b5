// Waits for a Work and checks Python's signals meanwhile. Used by the extension modules.
#pragma once

#include <functional>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"
#include "peal/group/work.h"

namespace peal::python {

/// Returns when the operation has succeeded; throws its error if it has failed. Throws
/// Error(timeout) if the operation has not ended within `timeout`; the operation then continues.
/// Signals interrupt the wait (signals.h). Call without the GIL.
void wait_for(Work& work, Timeout timeout = kGroupTimeout);

/// Waits until the operation has ended, with success or failure, or until the deadline. A signal
/// that interrupts the wait aborts the group (signals.h). Returns whether the operation has ended.
bool wait_until_ended(ProcessGroup& group,
                      Work& work,
                      Deadline deadline = Deadline(TimePoint::max()));

/// Work::when_completed for functions that may run Python; marks the thread as a BackendThread.
void when_completed(Work& work, std::function<void()> then);

/// As when_completed, for a function whose captured objects must live until then. If no thread can
/// be started to call the function, it is never called and its objects are never freed, because the
/// operation may still use them.
void keep_until_completed(Work& work, std::function<void()> then) noexcept;

}  // namespace peal::python
