// A call when the gradient of a parameter has been accumulated. The only file that knows how
// autograd holds accumulators, which changed between LibTorch 2.11 and 2.13 (a shared_ptr became an
// intrusive_ptr): it takes whatever the type is.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include <torch/csrc/autograd/variable.h>
#include <torch/types.h>

namespace peal::train {

/// As long as it lives, `call` is called in every backward pass that reaches the parameter, once,
/// on the thread that runs backward (parameters on the CPU), when parameter.grad() has its new
/// value. What `call` throws, backward() throws.
class GradientHook final {
 public:
  GradientHook(const torch::Tensor& parameter, std::function<void()> call);
  ~GradientHook();
  GradientHook(const GradientHook&) = delete;
  GradientHook& operator=(const GradientHook&) = delete;

 private:
  using Accumulator =
      decltype(torch::autograd::impl::grad_accumulator(std::declval<const torch::Tensor&>()));

  Accumulator accumulator_;  // a tensor holds its own weakly: without this the hook would vanish
  std::uintptr_t key_;
};

/// A number that tells backward passes apart; only within one.
int current_backward();

/// Calls `call` at the end of the backward pass that this is called in, before backward() returns.
/// What it throws, backward() throws.
void at_end_of_backward(std::function<void()> call);

}  // namespace peal::train
