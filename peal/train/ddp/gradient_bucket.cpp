#include "peal/train/ddp/gradient_bucket.h"

#include <utility>

#include <torch/torch.h>

#include "peal/train/tensors/element_type.h"

namespace peal::train {
namespace {

constexpr std::int64_t kAlignment = 64;             // bytes
constexpr std::int64_t kSmallGradient = 32 * 1024;  // bytes

/// `count` elements, rounded up to the alignment.
Elements with_gap(Elements count, DType dtype) {
  const std::int64_t unit = kAlignment / bytes_of(Elements(1), dtype).value;
  return Elements((count.value + unit - 1) / unit * unit);
}

/// A tensor in the block, which it keeps alive. For autograd it is not a view, because optimizers
/// detach gradients in place, which views reject.
torch::Tensor tensor_at(const Memory& memory,
                        Elements begin,
                        DType dtype,
                        torch::IntArrayRef sizes,
                        torch::IntArrayRef strides) {
  return torch::from_blob(
      memory.get() + bytes_of(begin, dtype).value,
      sizes,
      strides,
      [memory](void*) {},
      torch::dtype(scalar_type(dtype)));
}

/// The strides of the parameter if they leave no gaps, as autograd gives to gradients.
std::vector<std::int64_t> strides_of_gradient(const torch::Tensor& parameter) {
  if (parameter.is_non_overlapping_and_dense()) return parameter.strides().vec();
  const auto strides = c10::contiguous_strides(parameter.sizes());
  return {strides.begin(), strides.end()};
}

}  // namespace

GradientBucket::GradientBucket(ProcessGroup& group,
                               std::size_t index,
                               DType dtype,
                               std::vector<Parameter> parameters) {
  Elements count;
  for (const Parameter& parameter : parameters) {
    count += with_gap(Elements(parameter.tensor.numel()), dtype);
  }
  const Memory memory = group.allocate(bytes_of(count, dtype));
  memory_ = Buffer(memory.get(), count, dtype);
  contents_.index = index;
  contents_.flat = tensor_at(memory, Elements(0), dtype, {count.value}, {1});
  Elements begin;
  for (Parameter& parameter : parameters) {
    const Elements size(parameter.tensor.numel());
    const Bytes bytes = bytes_of(size, dtype);
    torch::Tensor place = tensor_at(
        memory, begin, dtype, parameter.tensor.sizes(), strides_of_gradient(parameter.tensor));
    memories_.push_back(bytes.value < kSmallGradient
                            ? PlaceMemoryPtr()
                            : c10::make_intrusive<PlaceMemory>(
                                  memory, place.data_ptr(), static_cast<std::size_t>(bytes.value)));
    contents_.gradients.push_back(
        {std::move(parameter.name), std::move(parameter.tensor), std::move(place)});
    begin += with_gap(size, dtype);
  }
}

}  // namespace peal::train
