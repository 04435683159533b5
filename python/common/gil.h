// Python's GIL, for C++ code that runs with or without the GIL held.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <exception>

namespace peal::python {

/// Calls `call`, which takes the GIL or runs Python code. Does not return if the interpreter has
/// ended: up to Python 3.13, pthread_exit then ends a thread that asks for the GIL. pthread_exit
/// unwinds C++ frames and would abort the process. Frames inside `call` are unwound first, without
/// the GIL, so none of them may hold a Python object.
/// noinline, because the compiler would otherwise replace ~Unwinding by std::terminate while an
/// exception is handled.
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

/// Releases the GIL for the lifetime of this object, if this thread holds the GIL. The destructor
/// does not return if the interpreter has ended in the meantime (call_unless_ended).
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
