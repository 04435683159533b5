#include "peal/train/element_type.h"

#include <algorithm>
#include <array>
#include <utility>

#include "peal/base/error.h"

namespace peal::train {
namespace {

constexpr std::array<std::pair<DType, torch::ScalarType>, kAllDTypes.size()> kSame = {{
    {DType::kBool, torch::kBool},
    {DType::kU8, torch::kUInt8},
    {DType::kI8, torch::kInt8},
    {DType::kI16, torch::kInt16},
    {DType::kI32, torch::kInt32},
    {DType::kI64, torch::kInt64},
    {DType::kF16, torch::kFloat16},
    {DType::kBF16, torch::kBFloat16},
    {DType::kF32, torch::kFloat32},
    {DType::kF64, torch::kFloat64},
    {DType::kC64, torch::kComplexFloat},
    {DType::kC128, torch::kComplexDouble},
}};

}  // namespace

DType element_type(torch::ScalarType type) {
  const auto* found =
      std::find_if(kSame.begin(), kSame.end(), [&](const auto& row) { return row.second == type; });
  if (found == kSame.end()) {
    throw Error(ErrorKind::kUnsupported,
                c10::str("tensors of type ",
                         type,
                         " cannot be communicated: convert them to one that can, with .to(...)"));
  }
  return found->first;
}

torch::ScalarType scalar_type(DType dtype) {
  return std::find_if(
             kSame.begin(), kSame.end(), [&](const auto& row) { return row.first == dtype; })
      ->second;
}

}  // namespace peal::train
