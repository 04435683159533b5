// Lets a caller end a blocking call from inside: the call invokes a callback regularly, which may
// throw. Python needs this, for example: its signal handlers only set a flag, and Ctrl-C takes
// effect when the callback checks the flag.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/error.h"

namespace peal {

/// Called on the thread of the blocking call; ends the call by throwing. Empty: no interrupts.
using Interrupt = std::function<void()>;

inline constexpr auto kInterruptEvery = std::chrono::milliseconds(50);

/// Wraps the user's exception, so that retry loops do not take it for a peal error. The code that
/// received the Interrupt rethrows `cause`. A group also ends its other calls, and notifies its
/// peers, with the Error of `error_of`.
struct Interrupted {
  std::exception_ptr cause;
};

/// The exception as an Error for a group: an Error stays unchanged, any other becomes an abort.
inline Error error_of(const Interrupted& interrupted) {
  try {
    std::rethrow_exception(interrupted.cause);
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& exception) {
    return Error(ErrorKind::kAborted,
                 std::string("an interrupt threw: ") + exception.what(),
                 {.cause = ErrorCause::kInterrupted, .reason = exception.what()});
  } catch (...) {
    return Error(ErrorKind::kAborted,
                 "an interrupt threw something that is not an exception",
                 {.cause = ErrorCause::kInterrupted});
  }
}

/// Calls the interrupt. Throws Interrupted if it throws.
inline void let_interrupt(const Interrupt& interrupt) {
  if (!interrupt) return;
  try {
    interrupt();
  } catch (...) {
    throw Interrupted{std::current_exception()};
  }
}

/// Calls `wait(until)` repeatedly until it returns true or the deadline passes, and calls the
/// interrupt in between. Returns the last result of `wait`. Throws Interrupted.
template <class Wait>
bool wait_or_interrupt(Deadline deadline, const Interrupt& interrupt, Wait&& wait) {
  while (true) {
    const Deadline slice = interrupt ? deadline.within(kInterruptEvery) : deadline;
    if (wait(slice)) return true;
    if (deadline.passed()) return false;
    let_interrupt(interrupt);
  }
}

}  // namespace peal
