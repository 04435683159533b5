#include "python/common/gil.h"

namespace peal::python {

std::optional<std::string> describe_exception(const pybind11::object& exception) {
  if (!exception || exception.is_none()) return std::nullopt;
  if (PyErr_GivenExceptionMatches(exception.ptr(), PyExc_SystemExit) != 0) return std::nullopt;
  auto text = pybind11::type::of(exception).attr("__name__").cast<std::string>();
  try {
    text += pybind11::str(": {}").format(pybind11::str(exception)).cast<std::string>();
  } catch (const pybind11::error_already_set&) {
    // Its __str__ raises.
  }
  return text;
}

std::optional<std::string> handled_exception() {
  if (Py_IsInitialized() == 0) return std::nullopt;
  const pybind11::gil_scoped_acquire gil;
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_GetExcInfo(&type, &value, &traceback);
  const auto held_type = pybind11::reinterpret_steal<pybind11::object>(type);
  const auto held_value = pybind11::reinterpret_steal<pybind11::object>(value);
  const auto held_traceback = pybind11::reinterpret_steal<pybind11::object>(traceback);
  return describe_exception(held_value);
}

}  // namespace peal::python
