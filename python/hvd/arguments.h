// The arguments of Horovod's operations as Python passes them. A wrong argument is a ValueError
// that names the argument; pybind11 would list the types of all arguments.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/utils/pybind.h>

#include "peal/base/error.h"

namespace peal::python {

/// "3.0, a float"; long values are left out.
std::string text_of_value(pybind11::handle value);

template <class T>
constexpr const char* kExpected = nullptr;
template <>
inline constexpr const char* kExpected<at::Tensor> = "a torch.Tensor";
template <>
inline constexpr const char* kExpected<std::vector<at::Tensor>> = "a list of torch.Tensor";
template <>
inline constexpr const char* kExpected<std::optional<at::Tensor>> = "a torch.Tensor or None";
template <>
inline constexpr const char* kExpected<std::optional<std::string>> = "a str or None";
template <std::integral T>
constexpr const char* kExpected<T> = "an int";
template <std::floating_point T>
constexpr const char* kExpected<T> = "a number";

/// Converts the argument `name` of `function`.
/// Errors: usage.
template <class T>
T argument(const pybind11::object& given, const char* function, const char* name) {
  pybind11::detail::make_caster<T> caster;
  if (caster.load(given, /*convert=*/true)) {
    return pybind11::detail::cast_op<T>(std::move(caster));
  }
  throw Error(ErrorKind::kUsage,
              std::string(function) + ": the argument `" + name + "` must be " + kExpected<T> +
                  ", and is " + text_of_value(given));
}

}  // namespace peal::python
