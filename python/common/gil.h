// Python's lock, for C++ that may be called with it or without it.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

namespace peal::python {

/// This thread is without the GIL while it lives, whether it had it or not. Where the interpreter
/// has ended meanwhile, the destructor does not return: up to Python 3.13 the interpreter ends a
/// thread that takes its GIL by pthread_exit, which would unwind the thread through C++ and so end
/// the process.
class __attribute__((visibility("hidden"))) WithoutGil {
 public:
  WithoutGil() {
    if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) thread_ = PyEval_SaveThread();
  }
  ~WithoutGil() noexcept(false) {
    if (thread_ == nullptr) return;
    EndOfThread end;
    PyEval_RestoreThread(thread_);
    end.has_come = false;
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  /// Stops the thread where it is unwound: a destructor can, even while another exception is
  /// handled. A handler of abi::__forced_unwind cannot.
  struct EndOfThread {
    ~EndOfThread() {
      while (has_come) ::pause();
    }
    bool has_come = true;
  };

  PyThreadState* thread_ = nullptr;
};

}  // namespace peal::python
