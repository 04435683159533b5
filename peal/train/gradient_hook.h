// A call when the gradient of a parameter has been accumulated. The only file that knows how
// autograd holds accumulators, which changed between LibTorch 2.11 and 2.13 (a shared_ptr became an
// intrusive_ptr): it takes whatever the type is.
#pragma once

#include <cstdint>
#include <functional>

#include <torch/csrc/autograd/function.h>
#include <torch/types.h>

namespace peal::train {

/// While it lives, each backward pass that reaches the parameter calls `call`, on the thread that
/// runs backward (parameters on the CPU), when parameter.grad() has its new value. An exception of
/// `call` leaves backward().
///
/// Loading, set_, set_data and type conversions make LibTorch replace the parameter's accumulator,
/// and with it all hooks of that accumulator. The tensor's own hooks remain. So a hook of the
/// tensor, which runs just before an accumulator does, follows to the accumulator that is running.
/// It calls once for each accumulator in the pass: twice where one backward pass runs a graph from
/// before a load and a graph from after the load.
class GradientHook final {
 public:
  /// The parameter requires a gradient.
  GradientHook(torch::Tensor parameter, std::function<void()> call);
  /// Removes everything from the parameter and its accumulator. Not inside `call`.
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
  // Owned, so that its address is not used again while this class compares with it. An accumulator
  // owns its tensor and is not owned by it, so there is no cycle.
  Accumulator accumulator_;
  std::uintptr_t accumulator_key_ = 0;
};

/// A number that tells backward passes apart; only within one.
int current_backward();

/// Calls `call` at the end of the backward pass that this is called in, before backward() returns.
/// An exception of `call` leaves backward().
void at_end_of_backward(std::function<void()> call);

}  // namespace peal::train
