// Converts peal::Error to a Python exception, for both extension modules.
#pragma once

#include <pybind11/pybind11.h>

#include "peal/base/error.h"

namespace peal::python {

/// From now on a peal::Error that leaves C++ becomes the Python exception `name` of `module`, a
/// class that is constructed from (message, kind).
/// An extension module calls this at its import. The class `name` is imported at the first error.
void translate_errors_to(const char* module, const char* name);

/// The Python exception for `error`. Call with the GIL held.
pybind11::object error_to_python(const Error& error);

}  // namespace peal::python
