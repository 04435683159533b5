// Ctrl-C while a call of Python's main thread waits in peal. Python's C handler only sets a flag,
// so a waiting call must check for signals. Used by the extension modules.
#pragma once

#include <exception>
#include <type_traits>

namespace peal::python {

/// The main thread calls this once, at the import of a module.
void remember_main_thread();

/// For InitOptions::interrupt. On Python's main thread, runs the handlers of pending signals. If a
/// handler raises, as for SIGINT, throws Error(aborted) and keeps the handler's exception for
/// `throw_pending_exception`.
/// Threads: any; with or without the GIL.
/// Cost: the GIL on the main thread; a comparison on other threads.
void check_signals();

/// While this object lives, this thread does not check signals. For places where a handler's
/// exception would be lost. Python runs the handlers afterwards.
class WithoutSignals {
 public:
  WithoutSignals();
  ~WithoutSignals();
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  bool before_;
};

/// Whether a handler has raised an exception that is not thrown yet.
bool has_pending_exception();

/// Throws the exception that a handler has raised, if any. Call after each call that checks
/// signals.
void throw_pending_exception();

/// Calls `call()`, then throws the exception that a handler has raised meanwhile, even if the call
/// succeeded.
template <class Call>
decltype(auto) interruptible(Call&& call) {
  try {
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      throw_pending_exception();
    } else {
      decltype(auto) result = call();
      throw_pending_exception();
      return result;
    }
  } catch (const std::exception&) {
    throw_pending_exception();
    throw;
  }
}

}  // namespace peal::python
