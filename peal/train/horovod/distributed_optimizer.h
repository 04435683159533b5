// An optimizer whose steps use the gradients of all ranks. For training programs, by
// peal/horovod.h.
#pragma once

#include <memory>
#include <utility>

#include <torch/optim/optimizer.h>

#include "peal/train/horovod/distributed_options.h"
#include "peal/train/horovod/gradient_exchange.h"

namespace peal::hvd {

/// The optimizer `Base`, such as torch::optim::SGD, over the ranks of a process set:
///   peal::hvd::DistributedOptimizer optimizer(
///       torch::optim::SGD(net->parameters(), 0.01), net->named_parameters());
///   ... optimizer.zero_grad(); loss.backward(); optimizer.step();
///
/// It is a `Base`: the parameters, options and state of the given optimizer move here. Schedulers,
/// checkpoints and clipping work as always. Call zero_grad and step of this class, not by a
/// reference to torch::optim::Optimizer, whose zero_grad is not virtual.
///
/// Backward starts the reduction of each gradient in its last pass (backward_passes_per_step), and
/// step() waits for all. A parameter that backward has not reached contributes zeros. The sum of
/// several passes is not divided by their number, as in Horovod; see Accumulation.
///
/// If ranks share memory, dense gradients on the CPU lie in memory of the process set (0040), which
/// this class keeps: as many bytes as the parameters have. A gradient that the program keeps from
/// an earlier step is not overwritten.
///
/// To change gradients before the step, as in mixed precision:
///   optimizer.synchronize(); clip(...);
///   { const auto skip = optimizer.skip_synchronize(); optimizer.step(); }
/// The step may also be left out.
///
/// Order: all ranks of the set have the same parameters, and make the same steps.
/// Threads: one at a time.
/// Errors: usage (before init; parameters without a name; wrong options; more backward passes than
///   backward_passes_per_step; zero_grad between backward and step), those of allreduce_.
/// Source: Sergeev and Del Balso 2018, Horovod. Adasum: Maleki et al. 2021.
template <class Base>
class DistributedOptimizer final : public Base {
 public:
  /// `named_parameters`: all parameters of the optimizer, and perhaps others.
  DistributedOptimizer(Base&& optimizer,
                       const NamedTensors& named_parameters,
                       DistributedOptions options = {})
      : Base(std::move(optimizer)),
        exchange_(std::make_unique<GradientExchange>(*this, named_parameters, std::move(options))) {
  }
  /// Names the parameters by their place.
  explicit DistributedOptimizer(Base&& optimizer, DistributedOptions options = {})
      : DistributedOptimizer(std::move(optimizer), NamedTensors(), std::move(options)) {}

  /// Waits for the gradients of all ranks.
  void synchronize() { exchange_->synchronize(); }

  /// While the result lives, step() does not synchronize, because synchronize() was called.
  /// Errors: usage (Adasum).
  [[nodiscard]] SkipSynchronize skip_synchronize() { return SkipSynchronize(*exchange_); }

  /// With a closure: synchronizes after each call of the closure.
  Tensor step(torch::optim::Optimizer::LossClosure closure = nullptr) override {
    if (exchange_->is_active() && exchange_->is_adasum()) return adasum_step(std::move(closure));
    if (closure == nullptr) {
      exchange_->before_step();
      return Base::step();
    }
    return Base::step([this, closure = std::move(closure)] {
      Tensor loss = closure();
      exchange_->before_step();
      return loss;
    });
  }

  void zero_grad(bool set_to_none = true) {
    exchange_->before_zero_grad();
    Base::zero_grad(set_to_none);
  }

  void set_backward_passes_per_step(int passes) { exchange_->set_backward_passes_per_step(passes); }

  /// Drops the reductions that backward has started.
  void load(torch::serialize::InputArchive& archive) override {
    exchange_->forget();
    Base::load(archive);
  }

 private:
  Tensor adasum_step(torch::optim::Optimizer::LossClosure closure) {
    const Tensors start = exchange_->start_of_step();
    Tensor loss = Base::step(std::move(closure));
    exchange_->combine_changes(start);
    return loss;
  }

  std::unique_ptr<GradientExchange> exchange_;
};

}  // namespace peal::hvd
