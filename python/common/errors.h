// Converts peal::Error to a Python exception, for the extension modules.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

#include "peal/base/error.h"

namespace peal::python {

/// From now on a peal::Error that leaves C++ becomes the Python exception `name` of `module`, a
/// class that is constructed from (message, kind).
/// An extension module calls this at its import. The class `name` is imported at the first error.
void translate_errors_to(const char* module, const char* name);

/// The Python exception for `error`. Call with the GIL held.
pybind11::object error_to_python(const Error& error);

/// A new reference, or null with Python's error set. Escapes bytes that are not UTF-8; the text of
/// an error may hold such bytes.
PyObject* text_to_python(std::string_view text);

/// Sets the fields of an error as attributes of an exception. Returns whether this succeeded; if
/// not, Python's error is set. Uses no pybind11 objects, because they must not be used while the
/// interpreter ends (call_unless_ended).
bool set_details(PyObject* exception, const ErrorDetails& details);

}  // namespace peal::python
