// Python's lock, and what Python is about to do, for C++ that may be called with the lock or
// without it.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>

namespace peal::python {

/// This thread is without the GIL while it lives, whether it had it or not.
class __attribute__((visibility("hidden"))) WithoutGil {
 public:
  WithoutGil() {
    if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) released_.emplace();
  }

 private:
  std::optional<pybind11::gil_scoped_release> released_;
};

/// "ValueError: out of luck"; without the text where the exception cannot say it. Nothing for None,
/// and for SystemExit, which is no failure but an end. With the GIL.
std::optional<std::string> describe_exception(const pybind11::object& exception);

/// What the exception says that this thread handles, or that is on its way through a `finally`:
/// "ValueError: out of luck". Threads: any, with the GIL or without.
std::optional<std::string> handled_exception();

}  // namespace peal::python
