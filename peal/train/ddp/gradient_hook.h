// Calls a function when the gradient of a parameter has been accumulated. Only this file depends on
// how autograd holds accumulators. The pointer type changed between LibTorch 2.11 and 2.13, from
// shared_ptr to intrusive_ptr. So this file deduces the type.
#pragma once

#include <cstdint>
#include <functional>

#include <torch/csrc/autograd/function.h>
#include <torch/types.h>

namespace peal::train {

/// While this object lives, each backward pass that reaches the parameter calls `call` when
/// parameter.grad() has its new value. The call is on the thread that runs backward (for parameters
/// on the CPU). An exception of `call` leaves backward().
///
/// Loading, set_, set_data and type conversions make LibTorch replace the parameter's accumulator
/// with all its hooks. The hooks of the tensor remain. So this class uses a hook of the tensor,
/// which runs just before an accumulator, to move its other hook to the running accumulator. `call`
/// runs once for each accumulator in the pass: twice if one backward pass runs a graph from before
/// a load and a graph from after it.
class GradientHook final {
 public:
  /// The parameter requires a gradient.
  GradientHook(torch::Tensor parameter, std::function<void()> call);
  /// Removes all hooks from the parameter and its accumulator. Must not run inside `call`.
  ~GradientHook();
  GradientHook(const GradientHook&) = delete;
  GradientHook& operator=(const GradientHook&) = delete;

 private:
  using Accumulator = decltype(torch::autograd::get_current_node());

  void follow();
  void leave();

  torch::Tensor parameter_;
  std::function<void()> call_;
  unsigned tensor_key_;
  // Owned, because this class compares its address, which must not be reused. An accumulator owns
  // its tensor, but the tensor does not own the accumulator, so ownership has no cycle.
  Accumulator accumulator_;
  std::uintptr_t accumulator_key_ = 0;
};

/// The number of the current backward pass, different for each pass. Call only within a pass.
int current_backward();

/// Calls `call` at the end of the current backward pass, before backward() returns. An exception of
/// `call` leaves backward().
void at_end_of_backward(std::function<void()> call);

}  // namespace peal::train
