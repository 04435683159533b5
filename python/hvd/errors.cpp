#include "python/hvd/errors.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include "peal/base/error.h"
#include "peal/train/horovod/errors.h"

#include "python/common/errors.h"
#include "python/common/gil.h"
#include "python/common/signals.h"

namespace peal::python {
namespace {

/// Owned, and never released: the interpreter may have ended before static destructors run.
PyObject* internal_class = nullptr;
PyObject* mismatch_class = nullptr;

void replace(PyObject*& owned, const pybind11::object& by) {
  Py_XDECREF(owned);
  owned = Py_NewRef(by.ptr());
}

PyObject* class_of(const Error& error) {
  const bool is_local =
      error.kind() == ErrorKind::kUsage || error.kind() == ErrorKind::kUnsupported;
  const bool is_internal = dynamic_cast<const hvd::HorovodInternalError*>(&error) != nullptr;
  if (is_local && !is_internal) return PyExc_ValueError;
  PyObject* const found = error.kind() == ErrorKind::kMismatch ? mismatch_class : internal_class;
  return found != nullptr ? found : PyExc_RuntimeError;
}

/// Whether Python accepts the fields of the error as attributes.
bool set_fields(PyObject* exception, const Error& error) {
  PyObject* const kind = text_to_python(name_of(error.kind()));
  const bool is_set = kind != nullptr && PyObject_SetAttrString(exception, "kind", kind) == 0;
  Py_XDECREF(kind);
  return is_set && set_details(exception, error.details());
}

/// Sets Python's error. Uses no pybind11 objects (see call_unless_ended).
void set_raised(const Error& error) {
  PyObject* const type = class_of(error);
  PyObject* const text = text_to_python(error.message());
  PyObject* const value = text != nullptr ? PyObject_CallOneArg(type, text) : nullptr;
  Py_XDECREF(text);
  if (value == nullptr) return;
  if (type == PyExc_ValueError || set_fields(value, error)) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value)), value);
  }
  Py_DECREF(value);
}

void translate_operation_error(std::exception_ptr caught) {
  if (!caught) return;
  try {
    std::rethrow_exception(caught);
  } catch (const Error& error) {
    call_unless_ended([&] { set_raised(error); });
  }
}

}  // namespace

void set_operation_errors(const pybind11::object& internal, const pybind11::object& mismatch) {
  replace(internal_class, internal);
  replace(mismatch_class, mismatch);
}

void translate_operation_errors() {
  pybind11::register_exception_translator(translate_operation_error);
}

void raise_in_backward(const std::exception_ptr& cause) {
  const pybind11::gil_scoped_acquire gil;
  try {
    throw_pending_exception();
    std::rethrow_exception(cause);
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (const Error& error) {
    set_raised(error);
  }
  python_error error;
  error.persist();
  throw error;  // NOLINT(misc-throw-by-value-catch-by-reference): torch's own type
}

}  // namespace peal::python
