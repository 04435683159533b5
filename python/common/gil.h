// Python's lock, for C++ that may be called with it or without it.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>

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

}  // namespace peal::python
