// Ctrl-C while a call of Python's main thread waits in peal. Python's own handler of a signal only
// takes a note, which this looks at; used by both extension modules.
#pragma once

#include <exception>
#include <type_traits>

namespace peal::python {

/// To be called once, by the main thread: when a module is imported.
void remember_main_thread();

/// For InitOptions::interrupt. Where this is Python's main thread, runs the handlers of the signals
/// that have come; if one of them raises, as that of SIGINT does, throws Error(peer_lost) and keeps
/// what it raised for `throw_pending_exception`.
/// Threads: any; with the GIL held or not. Cost: a comparison on other threads; the GIL on this
/// one.
void check_signals();

/// While it lives, this thread asks for no signals: where what a handler raises would be lost.
/// Python runs the handlers afterwards.
class WithoutSignals {
 public:
  WithoutSignals();
  ~WithoutSignals();
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  bool before_;
};

/// Whether a handler has raised what is yet to be thrown.
bool has_pending_exception();

/// After a call that may have been interrupted so: throws what Python has raised, if it has.
void throw_pending_exception();

/// Calls `call()`, and throws what Python has raised meanwhile, be it that the call ended well.
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
