#include "peal/train/ddp/gradient_bucket.h"

#include <utility>

#include <torch/torch.h>

#include "peal/train/tensors/element_type.h"

namespace peal::train {
namespace {

/// Cuts tensors from the block, from its beginning on. For autograd the tensors are not views,
/// because optimizers detach gradients in place, which views reject. Each tensor keeps the block
/// alive.
class Carver {
 public:
  Carver(Memory memory, DType dtype) : memory_(std::move(memory)), dtype_(dtype) {}

  torch::Tensor at(Elements begin, torch::IntArrayRef sizes, torch::IntArrayRef strides) const {
    return torch::from_blob(
        memory_.get() + bytes_of(begin, dtype_).value,
        sizes,
        strides,
        [memory = memory_](void*) {},
        torch::dtype(scalar_type(dtype_)));
  }

  /// Uses the strides of `model` if they leave no gaps, as autograd does for gradients.
  torch::Tensor next_like(const torch::Tensor& model) {
    const Elements begin = std::exchange(used_, used_ + Elements(model.numel()));
    if (model.is_non_overlapping_and_dense()) return at(begin, model.sizes(), model.strides());
    return at(begin, model.sizes(), c10::contiguous_strides(model.sizes()));
  }

 private:
  Memory memory_;
  DType dtype_;
  Elements used_;
};

}  // namespace

GradientBucket::GradientBucket(ProcessGroup& group,
                               std::size_t index,
                               DType dtype,
                               std::vector<Parameter> parameters) {
  Elements count;
  for (const Parameter& parameter : parameters) count += Elements(parameter.tensor.numel());
  Memory memory = group.allocate(bytes_of(count, dtype));
  memory_ = Buffer(memory.get(), count, dtype);
  Carver carver(std::move(memory), dtype);
  contents_.index = index;
  contents_.flat = carver.at(Elements(0), {count.value}, {1});
  for (Parameter& parameter : parameters) {
    torch::Tensor values = carver.next_like(parameter.tensor);
    contents_.gradients.push_back(
        {std::move(parameter.name), std::move(parameter.tensor), std::move(values)});
  }
}

}  // namespace peal::train
