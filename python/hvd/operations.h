// Horovod's operations on tensors for Python.
#pragma once

#include <pybind11/pybind11.h>

namespace peal::python {

/// Adds the functions to the module.
void bind_operations(pybind11::module_& module);

}  // namespace peal::python
