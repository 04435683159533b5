#include "peal/train/ddp/gradient_bucket.h"

#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/tensors/element_type.h"

namespace peal::train {
namespace {

/// Cuts tensors from the block, from its beginning on. For autograd the tensors are not views,
/// because optimizers detach gradients in place, which views reject. Each tensor keeps the block
/// alive.
class Carver {
 public:
  Carver(Memory memory, DType dtype) : memory_(std::move(memory)), dtype_(dtype) {}

  torch::Tensor next(torch::IntArrayRef sizes, torch::IntArrayRef strides) {
    torch::Tensor tensor = torch::from_blob(
        memory_.get() + bytes_of(used_, dtype_).value,
        sizes,
        strides,
        [memory = memory_](void*) {},
        torch::dtype(scalar_type(dtype_)));
    used_ += Elements(tensor.numel());
    return tensor;
  }

  /// Uses the strides of `model` if they leave no gaps, as autograd does for gradients.
  torch::Tensor next_like(const torch::Tensor& model) {
    if (model.is_non_overlapping_and_dense()) return next(model.sizes(), model.strides());
    return next(model.sizes(), c10::contiguous_strides(model.sizes()));
  }

 private:
  Memory memory_;
  DType dtype_;
  Elements used_;
};

}  // namespace

GradientBucket::GradientBucket(ProcessGroup& group,
                               DType dtype,
                               const std::vector<torch::Tensor>& parameters) {
  Elements count(std::ssize(parameters) + 1);  // the marks
  for (const torch::Tensor& parameter : parameters) count += Elements(parameter.numel());
  Memory memory = group.allocate(bytes_of(count, dtype));
  memory_ = Buffer(memory.get(), count, dtype);
  Carver carver(std::move(memory), dtype);
  for (const torch::Tensor& parameter : parameters) {
    gradients_.push_back(carver.next_like(parameter));
  }
  marks_ = carver.next({std::ssize(parameters)}, {1});
  module_mark_ = carver.next({1}, {1});
}

void GradientBucket::take(std::size_t index, const torch::Tensor& parameter) {
  const torch::NoGradGuard no_grad;
  torch::Tensor& here = gradients_[index];
  const torch::Tensor& gradient = parameter.grad();
  if (!gradient.defined()) {
    here.zero_();
    return;
  }
  if (gradient.layout() != torch::kStrided) {
    throw Error(ErrorKind::kUnsupported,
                "a sparse gradient cannot be averaged: make the layer give dense gradients, for "
                "example with torch::nn::EmbeddingOptions(...).sparse(false)");
  }
  if (gradient.requires_grad()) {
    throw Error(ErrorKind::kUnsupported,
                "a gradient that can be differentiated again cannot be averaged: call backward() "
                "without create_graph, and torch::autograd::grad() for such gradients");
  }
  if (!gradient.is_same(here)) here.copy_(gradient);
}

void GradientBucket::give(std::size_t index, const torch::Tensor& parameter) const {
  parameter.mutable_grad() = gradients_[index];
}

void GradientBucket::release(std::size_t index, const torch::Tensor& parameter) const {
  if (!parameter.grad().is_same(gradients_[index])) return;
  parameter.mutable_grad() = gradients_[index].clone();
}

void GradientBucket::mark_all(Mark mark) { marks_.fill_(mark == Mark::kSet); }

void GradientBucket::mark(std::size_t index, Mark mark) {
  marks_[static_cast<std::int64_t>(index)].fill_(mark == Mark::kSet);
}

std::vector<bool> GradientBucket::marks() const {
  const torch::Tensor set = marks_.ne(0);
  const bool* const first = set.const_data_ptr<bool>();
  return std::vector<bool>(first, first + set.numel());
}

void GradientBucket::mark_module(Mark mark) { module_mark_.fill_(mark == Mark::kSet); }

bool GradientBucket::module_is_marked() const { return module_mark_.ne(0).item<bool>(); }

}  // namespace peal::train
