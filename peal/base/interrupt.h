// How somebody ends a call that waits, where he cannot do so from outside: the call asks him now
// and then. A program whose signal handlers only take notes, as Python's, ends one so at Ctrl-C.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/error.h"

namespace peal {

/// Asked on the thread of the call that waits, which it ends by throwing. Empty: nobody wants to.
using Interrupt = std::function<void()>;

inline constexpr auto kInterruptEvery = std::chrono::milliseconds(50);

/// What an Interrupt has thrown, on its way through code that makes something else of errors, as by
/// trying again: it is none. Whoever was given the Interrupt throws the cause; a group, which tells
/// its other calls and its peers too, throws what `error_of` makes of it.
struct Interrupted {
  std::exception_ptr cause;
};

/// What it was, for a group: an Error as it is; anything else, which is no fault of this program,
/// as an abort.
inline Error error_of(const Interrupted& interrupted) {
  try {
    std::rethrow_exception(interrupted.cause);
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& exception) {
    return Error(ErrorKind::kPeerLost, std::string("an interrupt threw: ") + exception.what());
  } catch (...) {
    return Error(ErrorKind::kPeerLost, "an interrupt threw what is no exception");
  }
}

/// Throws Interrupted.
inline void let_interrupt(const Interrupt& interrupt) {
  if (!interrupt) return;
  try {
    interrupt();
  } catch (...) {
    throw Interrupted{std::current_exception()};
  }
}

/// Waits by `wait(until)`, which returns whether what it waits for has come, until the deadline;
/// returns what it returned last. Throws Interrupted.
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
