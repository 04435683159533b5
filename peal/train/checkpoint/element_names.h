// The element types of safetensors files as LibTorch's. Used by tensor_file.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <torch/types.h>

namespace peal::train {

inline constexpr std::array<std::pair<std::string_view, torch::ScalarType>, 19> kElementNames = {{
    {"BOOL", torch::kBool},
    {"U8", torch::kUInt8},
    {"I8", torch::kInt8},
    {"U16", torch::kUInt16},
    {"I16", torch::kInt16},
    {"U32", torch::kUInt32},
    {"I32", torch::kInt32},
    {"U64", torch::kUInt64},
    {"I64", torch::kInt64},
    {"F16", torch::kFloat16},
    {"BF16", torch::kBFloat16},
    {"F32", torch::kFloat32},
    {"F64", torch::kFloat64},
    {"C64", torch::kComplexFloat},
    {"F8_E5M2", torch::kFloat8_e5m2},
    {"F8_E4M3", torch::kFloat8_e4m3fn},
    {"F8_E5M2FNUZ", torch::kFloat8_e5m2fnuz},
    {"F8_E4M3FNUZ", torch::kFloat8_e4m3fnuz},
    {"F8_E8M0", torch::kFloat8_e8m0fnu},
}};

/// Undefined for unknown names. safetensors_element_size knows the same names.
inline torch::ScalarType element_type_of(std::string_view name) {
  for (const auto& [known, type] : kElementNames) {
    if (known == name) return type;
  }
  return torch::ScalarType::Undefined;
}

/// Empty for types that safetensors files do not have.
inline std::string_view element_name_of(torch::ScalarType type) {
  for (const auto& [name, known] : kElementNames) {
    if (known == type) return name;
  }
  return {};
}

}  // namespace peal::train
