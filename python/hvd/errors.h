// The errors of Horovod's operations as Python's exceptions.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>

namespace peal::python {

/// The classes for operations that have started: `mismatch` for ranks that disagree, `internal` for
/// all other errors. RuntimeError until this is called.
void set_operation_errors(const pybind11::object& internal, const pybind11::object& mismatch);

/// From now on a peal::Error that leaves C++ becomes an exception of Python: ValueError for local
/// misuse, else one of the classes above, with the fields of the error as attributes.
void translate_operation_errors();

/// Throws the error as the exception of torch that leaves backward() with its Python class.
void raise_in_backward(const std::exception_ptr& cause);

}  // namespace peal::python
