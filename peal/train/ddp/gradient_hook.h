// Calls functions around the accumulation of a parameter's gradient. Only these files
// depend on how autograd holds accumulators. The pointer type changed between LibTorch 2.11 and
// 2.13, from shared_ptr to intrusive_ptr. So these files deduce the type.
#pragma once

#include <cstdint>
#include <functional>

#include <torch/csrc/autograd/function.h>
#include <torch/types.h>

namespace peal::train {

/// A node of autograd's graph.
using NodePtr = decltype(torch::autograd::get_current_node());

/// Both calls are on the thread that runs backward for the device of the parameter: for the CPU,
/// the caller of backward(). An exception of a call leaves backward().
struct GradientCalls {
  /// Called just before autograd adds `gradient` to parameter.grad(), after all hooks of the
  /// parameter. Returns the gradient to add; undefined if the call has added it, and autograd must
  /// not. `gradient` is undefined if backward reached the parameter without a gradient.
  std::function<torch::Tensor(const torch::Tensor& gradient)> computed;
  /// Called when parameter.grad() has its new value.
  std::function<void()> accumulated;
};

/// While this object lives, each backward pass that reaches the parameter makes both calls.
///
/// Loading, set_, set_data and type conversions make LibTorch replace the parameter's accumulator
/// with all its hooks. The hooks of the tensor remain. So this class uses a hook of the tensor,
/// which runs just before an accumulator, to move its other hooks to the running accumulator. The
/// calls come once for each accumulator in the pass: twice if one backward pass runs a graph from
/// before a load and a graph from after it. They also come once for each nested backward pass.
///
/// LibTorch keeps all hooks of a tensor of one language in one object. It removes every other hook
/// of the tensor, also this class's, when the program registers its first one. So this class adds
/// its hook beside those of the program, and `renew` adds it again. Until then only the replacement
/// of the accumulator is not noticed.
class GradientHook final {
 public:
  /// The parameter requires a gradient.
  GradientHook(torch::Tensor parameter, GradientCalls calls);
  /// Removes all hooks from the parameter and its accumulator. Must not run inside a call.
  ~GradientHook();
  GradientHook(const GradientHook&) = delete;
  GradientHook& operator=(const GradientHook&) = delete;

  /// Adds the hook of the tensor again if it was removed. Not while backward runs. Cost: a
  /// comparison if it was not removed.
  void renew();

 private:
  class OfTensor;

  void follow(NodePtr accumulator);
  void leave();

  torch::Tensor parameter_;
  GradientCalls calls_;
  OfTensor* of_tensor_ = nullptr;  // owned by the tensor; null if removed
  // Owned, because this class compares its address, which must not be reused. An accumulator owns
  // its tensor, but the tensor does not own the accumulator, so ownership has no cycle.
  NodePtr accumulator_;
  std::uintptr_t before_key_ = 0, after_key_ = 0;
};

}  // namespace peal::train
