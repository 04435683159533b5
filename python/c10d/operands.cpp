#include "python/c10d/operands.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <utility>

#include "peal/train/tensors/element_type.h"

namespace peal::python {
namespace {

ReduceOp::Kind kind_of(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return ReduceOp::Kind::kSum;
    case c10d::ReduceOp::AVG:
      return ReduceOp::Kind::kAvg;
    case c10d::ReduceOp::PRODUCT:
      return ReduceOp::Kind::kProduct;
    case c10d::ReduceOp::MIN:
      return ReduceOp::Kind::kMin;
    case c10d::ReduceOp::MAX:
      return ReduceOp::Kind::kMax;
    case c10d::ReduceOp::BAND:
      return ReduceOp::Kind::kBand;
    case c10d::ReduceOp::BOR:
      return ReduceOp::Kind::kBor;
    case c10d::ReduceOp::BXOR:
      return ReduceOp::Kind::kBxor;
    case c10d::ReduceOp::PREMUL_SUM:
      return ReduceOp::Kind::kPremulSum;
    default:
      TORCH_CHECK(false, "Unhandled ReduceOp");
  }
}

const char* torch_name_of(ReduceOp::Kind kind) {
  switch (kind) {
    case ReduceOp::Kind::kSum:
      return "SUM";
    case ReduceOp::Kind::kProduct:
      return "PRODUCT";
    case ReduceOp::Kind::kMin:
      return "MIN";
    case ReduceOp::Kind::kMax:
      return "MAX";
    case ReduceOp::Kind::kAvg:
      return "AVG";
    case ReduceOp::Kind::kBand:
      return "BAND";
    case ReduceOp::Kind::kBor:
      return "BOR";
    case ReduceOp::Kind::kBxor:
      return "BXOR";
    case ReduceOp::Kind::kPremulSum:
      return "PREMUL_SUM";
  }
  return "?";
}

double factor_of(const c10d::ReduceOp& op) {
  const auto* supplement = dynamic_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK(supplement != nullptr, "PREMUL_SUM without a factor");
  if (supplement->tensor_factor.defined()) return supplement->tensor_factor.item().toDouble();
  return supplement->double_factor;
}

/// The memory of the tensor at `place` in a list, from its first element to its last.
struct Extent {
  const std::byte* begin;
  const std::byte* end;
  std::size_t place;
};

std::vector<Extent> extents_of(at::TensorList tensors) {
  std::vector<Extent> extents;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const at::Tensor& tensor = tensors[k];
    if (!tensor.defined() || !tensor.is_cpu() || tensor.layout() != at::kStrided) continue;
    if (tensor.numel() == 0) continue;
    const auto* const begin = static_cast<const std::byte*>(tensor.const_data_ptr());
    const std::size_t bytes = at::detail::computeStorageNbytes(
        tensor.sizes(), tensor.strides(), tensor.dtype().itemsize());
    extents.push_back({begin, begin + bytes, k});
  }
  return extents;
}

/// For each tensor of the list: kCopy if it shares memory with another tensor.
std::vector<Storage> places_of(at::TensorList tensors) {
  std::vector<Extent> extents = extents_of(tensors);
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return a.begin < b.begin;
  });
  std::vector<Storage> places(tensors.size(), Storage::kOwnMemory);
  const Extent* furthest = nullptr;  // of the extents so far, the one with the last end
  for (const Extent& extent : extents) {
    if (furthest != nullptr && extent.begin < furthest->end) {
      places[extent.place] = places[furthest->place] = Storage::kCopy;
    }
    if (furthest == nullptr || extent.end > furthest->end) furthest = &extent;
  }
  return places;
}

}  // namespace

Carrier carrier_of(at::ScalarType type) {
  if (const auto same = train::try_element_type(type)) return {*same, 1};
  return {DType::kU8, static_cast<std::int64_t>(c10::elementSize(type))};
}

ReduceOp reduce_op_of(const c10d::ReduceOp& op, at::ScalarType type) {
  const ReduceOp::Kind kind = kind_of(op);
  const auto dtype = train::try_element_type(type);
  TORCH_CHECK(dtype, "Invalid scalar type: peal cannot reduce tensors of ", type);
  if (!has_meaning(kind, *dtype)) {
    TORCH_CHECK_TYPE(kind != ReduceOp::Kind::kAvg || *dtype != DType::kBool,
                     "Cannot use ReduceOp.AVG with boolean inputs");
    const bool is_bitwise = kind == ReduceOp::Kind::kBand || kind == ReduceOp::Kind::kBor ||
                            kind == ReduceOp::Kind::kBxor;
    TORCH_CHECK(
        !is_bitwise, "Cannot use ReduceOp.", torch_name_of(kind), " with non-integral dtype");
    TORCH_CHECK(false, "Cannot use ReduceOp.", torch_name_of(kind), " with dtype ", type);
  }
  if (kind == ReduceOp::Kind::kPremulSum) return ReduceOp::premul_sum(factor_of(op));
  return {kind};
}

TensorOperand::TensorOperand(at::Tensor tensor, Use use, Storage place)
    : tensor_(std::move(tensor)), use_(use) {
  TORCH_CHECK(tensor_.defined(), "an undefined tensor cannot be communicated: give it a value");
  TORCH_CHECK(tensor_.device().is_cpu(),
              "peal only supports CPU tensors, and this tensor is on ",
              tensor_.device(),
              ": copy it to the CPU with .cpu() first");
  TORCH_CHECK(tensor_.layout() == at::kStrided,
              "peal only supports dense tensors, and this tensor is of layout ",
              tensor_.layout(),
              ": make it dense with .to_dense() first");
  if (place == Storage::kCopy || !train::is_plain(tensor_)) {
    const at::AutoDispatchBelowAutograd no_grad;
    dense_ = at::empty(tensor_.sizes(), tensor_.options().memory_format(std::nullopt));
    if (use != Use::kWrite) dense_.copy_(tensor_);
  }
  const at::Tensor& memory = dense_.defined() ? dense_ : tensor_;
  const Carrier carrier = carrier_of(memory.scalar_type());
  buffer_ = {memory.data_ptr(), Elements(memory.numel() * carrier.each), carrier.dtype};
}

void TensorOperand::finish() const {
  if (!is_copied() || use_ == Use::kRead) return;
  const at::AutoDispatchBelowAutograd no_grad;
  tensor_.copy_(dense_);
}

std::vector<ConstBuffer> TensorOperands::inputs() const {
  std::vector<ConstBuffer> all;
  all.reserve(in.size());
  for (const TensorOperand& operand : in) all.emplace_back(operand.buffer());
  return all;
}

std::vector<Buffer> TensorOperands::outputs() const {
  std::vector<Buffer> all;
  all.reserve(out.size());
  for (const TensorOperand& operand : out) all.push_back(operand.buffer());
  return all;
}

void TensorOperands::finish() const {
  for (const TensorOperand& operand : out) operand.finish();
  const at::AutoDispatchBelowAutograd no_grad;
  for (const Copy& copy : copies) copy.to.copy_(copy.from);
}

std::vector<TensorOperand> operands(at::TensorList tensors, Use use) {
  std::vector<TensorOperand> all;
  all.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) all.emplace_back(tensor, use);
  return all;
}

TensorOperands in_place(at::TensorList tensors) {
  if (tensors.size() == 1) return {{}, operands(tensors, Use::kReadWrite)};
  const std::vector<Storage> places = places_of(tensors);
  TensorOperands all;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    all.out.emplace_back(tensors[k], Use::kReadWrite, places[k]);
  }
  return all;
}

}  // namespace peal::python
