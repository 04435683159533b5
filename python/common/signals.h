// Ctrl-C while a call of Python's main thread waits in peal. Python's own handler of a signal only
// takes a note, which this looks at; used by both extension modules.
#pragma once

#include <exception>

namespace peal::python {

/// To be called once, by the main thread: when a module is imported.
void remember_main_thread();

/// For InitOptions::interrupt. Where this is Python's main thread, runs the handlers of the signals
/// that have come; if one of them raises, as that of SIGINT does, throws Error(peer_lost) and keeps
/// what it raised for `end_by_signal`.
/// Threads: any; with the GIL held or not. Cost: a comparison on other threads; the GIL on this
/// one.
void check_signals();

/// In a catch block, for an error of a call that may have been interrupted so: throws what Python
/// has raised, if it has; else what was caught.
[[noreturn]] void throw_what_python_raised();

/// Calls `call()`, and throws what Python has raised where that is why it ended.
template <class Call>
decltype(auto) interruptible(Call&& call) {
  try {
    return call();
  } catch (const std::exception&) {
    throw_what_python_raised();
  }
}

}  // namespace peal::python
