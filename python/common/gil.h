// Python's lock, for C++ that may be called with it or without it.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <exception>

namespace peal::python {

/// Calls `call`, which takes the GIL or runs Python code. If the interpreter has ended, this does
/// not return. The reason: a thread that asks for the GIL then is ended by pthread_exit (up to
/// Python 3.13). That unwinds C++ frames and would abort the process. It is never inlined: where an
/// exception is under way, the compiler puts std::terminate in place of the destructor that stops
/// the thread.
template <class Call>
[[gnu::noinline]] void call_unless_ended(Call&& call) {
  /// A destructor can stop the thread even while an exception is handled. A handler of
  /// abi::__forced_unwind cannot.
  struct Unwinding {
    ~Unwinding() {
      while (is_possible && std::uncaught_exceptions() == exceptions) ::pause();
    }
    bool is_possible = true;
    int exceptions = std::uncaught_exceptions();
  } unwinding;
  call();
  unwinding.is_possible = false;
}

/// Releases the GIL while it lives, if this thread holds it. If the interpreter has ended in the
/// meantime, the destructor does not return (call_unless_ended).
class __attribute__((visibility("hidden"))) WithoutGil {
 public:
  WithoutGil() {
    if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) thread_ = PyEval_SaveThread();
  }
  ~WithoutGil() noexcept(false) {
    if (thread_ == nullptr) return;
    call_unless_ended([this] { PyEval_RestoreThread(thread_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* thread_ = nullptr;
};

}  // namespace peal::python
