#include "python/common/errors.h"

#include <exception>
#include <string>

#include "python/common/gil.h"

namespace peal::python {
namespace {

const char* error_module = nullptr;
const char* error_name = nullptr;

/// A new reference, or null with Python's error set.
PyObject* new_error(const std::string& message, const std::string& kind) {
  PyObject* const module = PyImport_ImportModule(error_module);
  if (module == nullptr) return nullptr;
  PyObject* const value =
      PyObject_CallMethod(module, error_name, "ss", message.c_str(), kind.c_str());
  Py_DECREF(module);
  return value;
}

void translate(std::exception_ptr caught) {
  if (!caught) return;
  try {
    std::rethrow_exception(caught);
  } catch (const Error& error) {
    const std::string message(error.message());
    const std::string kind(name_of(error.kind()));
    call_unless_ended([&] {  // without pybind11's objects: see call_unless_ended
      PyObject* const value = new_error(message, kind);
      if (value != nullptr) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value)), value);
      Py_XDECREF(value);
    });
  }
}

}  // namespace

pybind11::object error_to_python(const Error& error) {
  PyObject* const value =
      new_error(std::string(error.message()), std::string(name_of(error.kind())));
  if (value == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(value);
}

void translate_errors_to(const char* module, const char* name) {
  error_module = module;
  error_name = name;
  pybind11::register_exception_translator(translate);
}

}  // namespace peal::python
