#include "python/hvd/arguments.h"

namespace peal::python {

std::string text_of_value(pybind11::handle value) {
  constexpr std::size_t kLongest = 60;
  if (value.is_none()) return "None";
  const auto type = pybind11::str(pybind11::type::handle_of(value).attr("__name__"));
  const std::string kind = type.cast<std::string>();
  const std::string text = pybind11::repr(value).cast<std::string>();
  return text.size() > kLongest ? "of the type " + kind : text + ", of the type " + kind;
}

}  // namespace peal::python
