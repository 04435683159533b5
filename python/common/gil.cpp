#include "python/common/gil.h"

namespace peal::python {

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
  if (!held_value || held_value.is_none()) return std::nullopt;
  const auto name = pybind11::type::of(held_value).attr("__name__");
  return pybind11::str("{}: {}").format(name, pybind11::str(held_value)).cast<std::string>();
}

}  // namespace peal::python
