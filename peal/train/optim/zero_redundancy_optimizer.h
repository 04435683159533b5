// An optimizer whose state is divided among the ranks. For training programs.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "peal/train/optim/sharded_optimizer.h"

namespace peal::train {

/// The options of an optimizer. Specialise it for your own optimizer.
template <class Optimizer>
struct OptionsOf;
template <>
struct OptionsOf<torch::optim::SGD> {
  using Type = torch::optim::SGDOptions;
};
template <>
struct OptionsOf<torch::optim::Adam> {
  using Type = torch::optim::AdamOptions;
};
template <>
struct OptionsOf<torch::optim::AdamW> {
  using Type = torch::optim::AdamWOptions;
};
template <>
struct OptionsOf<torch::optim::Adagrad> {
  using Type = torch::optim::AdagradOptions;
};
template <>
struct OptionsOf<torch::optim::RMSprop> {
  using Type = torch::optim::RMSpropOptions;
};
template <>
struct OptionsOf<torch::optim::LBFGS> {
  using Type = torch::optim::LBFGSOptions;
};

/// The optimizer `Inner`, with the state of each parameter on one rank only:
///   peal::train::DistributedDataParallel model(net, group);
///   peal::train::ZeroRedundancyOptimizer<torch::optim::AdamW> optimizer(group, net, {1e-3});
///   ... optimizer.zero_grad(); loss(model.forward(x), y).backward(); optimizer.step();
///
/// Each rank updates the parameters that it owns, and step() copies them to the other ranks. So all
/// ranks have the parameters that `Inner` would give them, if they have the same gradients, as
/// after the backward pass of DistributedDataParallel. A rank may own no parameter. With Adam
/// on n ranks, the state of a rank has about 2 / n of the size of all parameters. The excess is at
/// most twice the size of the largest parameter.
///
/// It is a torch::optim::Optimizer: zero_grad(), schedulers, param_groups() and add_param_group()
/// work as always. Its map state() is empty; gather_state() has the state by the names of the
/// parameters in the module.
///
/// `Inner` may be any optimizer that updates each parameter independently: the optimizers of
/// LibTorch except LBFGS, or your own, with a constructor from groups and options.
/// Order: construction, step and gather_state are collective.
/// Threads: one at a time.
/// Errors: mismatch (the parameters or options differ between ranks; names the first difference),
///   usage (a parameter that is not in the module, or twice in the groups), unsupported (LBFGS),
///   and those of each function.
/// Cost: see step.
/// Source: Rajbhandari et al. 2020, ZeRO: Memory Optimizations Toward Training Trillion Parameter
///   Models (stage 1).
template <class Inner>
class ZeroRedundancyOptimizer final : public ShardedOptimizer {
 public:
  using Options = typename OptionsOf<Inner>::Type;

  /// All parameters of the module in one group, each once.
  ZeroRedundancyOptimizer(ProcessGroupPtr group,
                          std::shared_ptr<torch::nn::Module> module,
                          const Options& options,
                          const ZeroOptions& zero = {})
      : ZeroRedundancyOptimizer(std::move(group), module, one_group(*module), options, zero) {}
  /// Several groups, with options of their own. `defaults` are the options of groups without.
  ZeroRedundancyOptimizer(ProcessGroupPtr group,
                          std::shared_ptr<torch::nn::Module> module,
                          const Groups& groups,
                          const Options& defaults,
                          const ZeroOptions& zero = {})
      : ShardedOptimizer(
            std::move(group),
            std::move(module),
            groups,
            std::make_unique<Options>(defaults),
            [defaults](const Groups& own) { return std::make_unique<Inner>(own, defaults); },
            zero) {}
  // The same for modules of TORCH_MODULE.
  template <class Module>
  ZeroRedundancyOptimizer(ProcessGroupPtr group,
                          const torch::nn::ModuleHolder<Module>& module,
                          const Options& options,
                          const ZeroOptions& zero = {})
      : ZeroRedundancyOptimizer(std::move(group), base_of(module), options, zero) {}
  template <class Module>
  ZeroRedundancyOptimizer(ProcessGroupPtr group,
                          const torch::nn::ModuleHolder<Module>& module,
                          const Groups& groups,
                          const Options& defaults,
                          const ZeroOptions& zero = {})
      : ZeroRedundancyOptimizer(std::move(group), base_of(module), groups, defaults, zero) {}

 private:
  template <class Module>
  static std::shared_ptr<torch::nn::Module> base_of(const torch::nn::ModuleHolder<Module>& holder) {
    return holder.ptr();
  }
};

}  // namespace peal::train
