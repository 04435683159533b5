#include "python/common/raised.h"

#include <exception>
#include <optional>

#include "python/common/gil.h"

namespace peal::python {

std::string words_of(const pybind11::object& exception) noexcept {
  try {
    const auto errors = pybind11::module_::import("peal._errors");
    return errors.attr("words_of")(exception).cast<std::string>();
  } catch (const std::exception&) {
    return Py_TYPE(exception.ptr())->tp_name;  // the interpreter ends
  }
}

Raised describe_raised(const pybind11::object& exception) noexcept {
  if (!exception || exception.is_none()) return {};
  try {
    if (PyErr_GivenExceptionMatches(exception.ptr(), PyExc_SystemExit) != 0) {
      const pybind11::object code = exception.attr("code");
      return {{}, !code.is_none() && !code.equal(pybind11::int_(0))};
    }
  } catch (const std::exception&) {
    PyErr_Clear();  // a code that cannot be compared is described like any exception
  }
  return {words_of(exception), false};
}

Raised handled_exception() noexcept {
  if (Py_IsInitialized() == 0) return {};
  std::optional<pybind11::gil_scoped_acquire> gil;
  call_unless_ended([&] { gil.emplace(); });
  const pybind11::error_scope raised_meanwhile;
  try {
    return describe_raised(pybind11::module_::import("peal._ending").attr("handled")());
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace peal::python
