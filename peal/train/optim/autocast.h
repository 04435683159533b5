// Computes the forward pass in 16 bits, with f32 parameters. C++ LibTorch has the functions for
// this, but no guard.
#pragma once

#include <optional>

#include <torch/types.h>

namespace peal::train {

/// Whether a weight that is used several times in a region is converted once or each time.
enum class WeightCache : unsigned char {
  kOn,
  kOff,  // for regions that change weights: an optimizer's step, broadcast_parameters, a load
};

/// While this object lives, the operations of this thread on CPU tensors that gain from it
/// (matrix products, convolutions) compute in `type`, as under torch.autocast("cpu"):
///   { Autocast autocast(torch::kBFloat16); loss = loss_of(net->forward(x), y); }
///   loss.backward();
/// Gradients of f32 parameters are f32. Guards may be nested, also with other types; nullopt
/// computes a part without autocast. The end of the guard restores the state before, also when an
/// exception leaves the region.
///
/// LibTorch keeps the 16-bit copies of weights until the outermost guard ends. So weights that
/// change inside the region have no effect there. Step the optimizer outside, or use kOff.
/// Threads: the thread that made the guard must end it, before guards made earlier. Other threads
///   are not affected, nor are the workers of LibTorch's parallel operations.
/// Errors: usage (a type other than kBFloat16 and kHalf).
class Autocast final {
 public:
  explicit Autocast(std::optional<torch::ScalarType> type,
                    WeightCache weight_cache = WeightCache::kOn);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool enabled_before_;
  bool cache_enabled_before_;
  torch::ScalarType type_before_;
};

}  // namespace peal::train
