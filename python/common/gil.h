// Python's lock, for C++ that may be called with it or without it.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <exception>

namespace peal::python {

/// Calls `call`, which takes the GIL or runs Python code, and does not return if the interpreter
/// has ended. Up to Python 3.13 a thread that asks for the GIL then is ended by pthread_exit, which
/// unwinds C++ frames and would abort the process. Frames inside `call` are unwound first, without
/// the GIL: none of them may hold a Python object. noinline: while an exception is handled, the
/// compiler would replace ~Unwinding by std::terminate.
template <class Call>
[[gnu::noinline]] void call_unless_ended(Call&& call) {
  /// A destructor can stop the thread even while an exception is handled. A handler of
  /// abi::__forced_unwind cannot.
  struct Unwinding {
    ~Unwinding() {
      while (is_running && std::uncaught_exceptions() == exceptions) ::pause();
    }
    bool is_running = true;
    int exceptions = std::uncaught_exceptions();
  } unwinding;
  call();
  unwinding.is_running = false;
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
