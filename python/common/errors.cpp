#include "python/common/errors.h"

#include <exception>
#include <string_view>

#include "python/common/gil.h"

namespace peal::python {
namespace {

const char* error_module = nullptr;
const char* error_name = nullptr;

/// Sets an attribute to `value`, a new reference that may be null. Returns whether this succeeded.
bool set(PyObject* error, const char* name, PyObject* value) {
  const bool is_set = value != nullptr && PyObject_SetAttrString(error, name, value) == 0;
  Py_XDECREF(value);
  return is_set;
}

/// A new reference, or null with Python's error set. Uses no pybind11 objects, because they must
/// not be used while the interpreter ends (call_unless_ended).
PyObject* new_error(const Error& error) {
  PyObject* const module = PyImport_ImportModule(error_module);
  if (module == nullptr) return nullptr;
  PyObject* const value = PyObject_CallMethod(module,
                                              error_name,
                                              "NN",
                                              text_to_python(error.message()),
                                              text_to_python(name_of(error.kind())));
  Py_DECREF(module);
  if (value == nullptr || set_details(value, error.details())) return value;
  Py_DECREF(value);
  return nullptr;
}

void translate(std::exception_ptr caught) {
  if (!caught) return;
  try {
    std::rethrow_exception(caught);
  } catch (const Error& error) {
    call_unless_ended([&] {
      PyObject* const value = new_error(error);
      if (value != nullptr) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value)), value);
      Py_XDECREF(value);
    });
  }
}

}  // namespace

PyObject* text_to_python(std::string_view text) {
  return PyUnicode_DecodeUTF8(
      text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
}

bool set_details(PyObject* exception, const ErrorDetails& details) {
  PyObject* const rank = details.rank ? PyLong_FromLong(*details.rank) : Py_NewRef(Py_None);
  return set(exception, "rank", rank) && set(exception, "host", text_to_python(details.host)) &&
         set(exception, "operation", text_to_python(details.operation)) &&
         set(exception, "cause", text_to_python(name_of(details.cause))) &&
         set(exception, "reason", text_to_python(details.reason));
}

pybind11::object error_to_python(const Error& error) {
  PyObject* const value = new_error(error);
  if (value == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(value);
}

void translate_errors_to(const char* module, const char* name) {
  error_module = module;
  error_name = name;
  pybind11::register_exception_translator(translate);
}

}  // namespace peal::python
