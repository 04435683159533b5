// Maps LibTorch's element types to peal's, and tells whether a tensor's memory can be sent without
// a copy. Used in this folder and by the backend of torch.distributed in Python.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <utility>

#include "peal/base/dtype.h"

namespace peal::train {

inline constexpr std::array<std::pair<DType, at::ScalarType>, kAllDTypes.size()> kElementTypes = {{
    {DType::kBool, at::kBool},
    {DType::kU8, at::kByte},
    {DType::kI8, at::kChar},
    {DType::kI16, at::kShort},
    {DType::kI32, at::kInt},
    {DType::kI64, at::kLong},
    {DType::kF16, at::kHalf},
    {DType::kBF16, at::kBFloat16},
    {DType::kF32, at::kFloat},
    {DType::kF64, at::kDouble},
    {DType::kC64, at::kComplexFloat},
    {DType::kC128, at::kComplexDouble},
}};

/// nullopt for types that peal does not reduce, such as quantized and float8 types.
inline std::optional<DType> try_element_type(at::ScalarType type) {
  for (const auto& [dtype, same] : kElementTypes) {
    if (same == type) return dtype;
  }
  return std::nullopt;
}

/// Errors: unsupported, if try_element_type returns nullopt.
DType element_type(at::ScalarType type);

/// The inverse of element_type.
at::ScalarType scalar_type(DType dtype);

/// Whether the tensor's memory is on the CPU and holds its values in row-major order, without gaps
/// or lazy conversions.
inline bool is_plain(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

}  // namespace peal::train
