#include "peal/train/ddp/trained_parameter.h"

#include <ATen/ScalarOps.h>

#include <torch/csrc/autograd/variable.h>
#include <torch/torch.h>

#include "peal/base/error.h"

namespace peal::train {
namespace {

bool fits(const torch::Tensor& gradient, const torch::Tensor& place) {
  return gradient.layout() == torch::kStrided && gradient.sizes() == place.sizes();
}

/// Whether the program has a hook that autograd calls after it has added a gradient itself.
bool has_hook_after_accumulation(const torch::Tensor& parameter) {
  return torch::autograd::impl::post_acc_grad_hooks(parameter) != nullptr;
}

torch::Tensor scaled(const torch::Tensor& gradient, double weight) {
  if (weight == 0) return torch::zeros_like(gradient);  // also if that of an empty batch is NaN
  return weight == 1 ? gradient : gradient * weight;
}

/// place = weight * gradient
void write(torch::Tensor& place, const torch::Tensor& gradient, double weight) {
  if (weight == 1) {
    place.copy_(gradient);
  } else if (weight == 0) {
    place.zero_();  // also if the gradient of an empty batch is NaN
  } else {
    at::mul_out(place, gradient, at::native::wrapped_scalar_tensor(weight));
  }
}

/// Whether the gradient was computed in the place.
bool is_computed_in(const torch::Tensor& place, const torch::Tensor& gradient) {
  return gradient.data_ptr() == place.data_ptr() && gradient.strides() == place.strides();
}

/// Whether the program keeps the gradient, or a tensor that shares its memory. Autograd holds it
/// once while it arrives. A view holds the tensor of which it is a view.
bool is_kept(const torch::Tensor& gradient) {
  const std::size_t tensors = gradient.is_view() ? 2 : 1;
  return gradient.use_count() > 1 || gradient.storage().use_count() > tensors ||
         (gradient.is_view() && gradient._base().use_count() > 1);
}

/// A gradient that stays as it is while `place` is written.
torch::Tensor apart(const torch::Tensor& gradient, const torch::Tensor& place) {
  return gradient.is_same(place) ? gradient.clone() : gradient;
}

}  // namespace

torch::Tensor TrainedParameter::accumulate(const torch::Tensor& gradient,
                                           double weight,
                                           Earlier earlier) {
  const torch::NoGradGuard no_grad;
  torch::Tensor& sum = tensor.mutable_grad();
  if (was_dropped()) window.set_aside.reset();
  if (!window.reached && earlier == Earlier::kIsAdded && sum.defined()) {
    if (sum.is_sparse() || sum.any().item<bool>()) window.set_aside = apart(sum, place);
    sum.reset();
  }
  const bool is_plain = !sum.defined() || (sum.layout() == torch::kStrided && !sum.requires_grad());
  const bool may_use_place = place.defined() && fits_device() && !pass.is_apart &&
                             fits(gradient, place) && gradient.scalar_type() == place.scalar_type();
  if (!may_use_place || !is_plain) return scaled(gradient, weight);
  const bool autograd_must_add = has_hook_after_accumulation(tensor);
  if (memory != nullptr && memory->is_in_use()) {
    if (is_computed_in(place, gradient) && !sum.defined() && !autograd_must_add) {
      if (is_kept(gradient)) move_out_of_place(gradient);
      if (weight != 1) write(place, place, weight);
      sum = place;
      return {};
    }
    if (!is_in_place()) {
      may_give = false;
      return scaled(gradient, weight);
    }
  }
  if (!sum.defined() && !autograd_must_add) {
    write(place, gradient, weight);
    sum = place;
    return {};
  }
  if (!sum.defined()) {
    place.zero_();
  } else if (!sum.is_same(place)) {
    place.copy_(sum);
  }
  sum = place;
  if (weight == 1 || autograd_must_add) return scaled(gradient, weight);
  if (weight != 0) place.add_(gradient, weight);
  return {};
}

void TrainedParameter::fill_place(Earlier earlier) {
  const torch::NoGradGuard no_grad;
  if (was_dropped() && !pass.is_final) {
    window.reached = false;
    window.set_aside.reset();
  }
  const torch::Tensor& sum = tensor.grad();
  if (sum.defined() && sum.requires_grad()) reject_create_graph();
  if (!window.reached && sum.defined()) window.set_aside = apart(sum, place);
  if (!place.defined()) return;
  const bool contributes = !pass.is_apart && (window.reached || earlier == Earlier::kIsAveraged);
  if (!sum.defined() || !contributes || !fits(sum, place)) {
    place.zero_();
  } else if (!sum.is_same(place)) {
    place.copy_(sum);
  }
}

void TrainedParameter::settle(bool reached_somewhere, Earlier earlier) {
  const torch::NoGradGuard no_grad;
  torch::Tensor& sum = tensor.mutable_grad();
  if (reached_somewhere) {
    if (!is_sparse) sum = fits_device() ? place : place.to(tensor.device());
    if (earlier == Earlier::kIsAdded && window.set_aside.defined()) sum.add_(window.set_aside);
  } else if (window.set_aside.defined() && sum.is_same(place)) {
    place.copy_(window.set_aside);
  }
  window.set_aside.reset();
  window.reached = false;
}

bool TrainedParameter::expects_gradient() const {
  return memory != nullptr && may_give && !pass.is_apart && !pass.is_final && !pass.is_ready &&
         !memory->is_in_use() && !tensor.grad().defined();
}

void TrainedParameter::leave_bucket() {
  place.reset();
  memory.reset();
  bucket = 0;
}

void TrainedParameter::keep_apart() {
  const torch::NoGradGuard no_grad;
  if (is_in_place()) tensor.mutable_grad() = place.clone();
  pass.is_apart = true;
}

void TrainedParameter::move_to(std::size_t new_bucket,
                               const torch::Tensor& new_place,
                               PlaceMemoryPtr new_memory) {
  const torch::NoGradGuard no_grad;
  if (is_in_place()) {
    new_place.copy_(place);
    tensor.mutable_grad() = new_place;
  }
  bucket = new_bucket;
  place = new_place;
  memory = fits_device() ? std::move(new_memory) : nullptr;
}

void reject_create_graph() {
  throw Error(ErrorKind::kUnsupported,
              "a gradient that can be differentiated again cannot be averaged: call backward() "
              "without create_graph, and autograd's grad() for such gradients");
}

}  // namespace peal::train
