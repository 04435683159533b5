// peal::Error as Python's, for both extension modules.
#pragma once

#include <pybind11/pybind11.h>

#include "peal/base/error.h"

namespace peal::python {

/// From now on a peal::Error that leaves C++ becomes the Python exception `name` of `module`: a
/// class that is made of (message, kind).
/// To be called when an extension module is imported. `name` is looked up when it is needed.
void translate_errors_to(const char* module, const char* name);

/// The Python exception that such an error becomes. With the GIL held.
pybind11::object error_to_python(const Error& error);

}  // namespace peal::python
