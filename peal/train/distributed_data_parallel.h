// Data parallelism: every rank has the whole model and a part of each batch. What a training
// program wraps its module in.
#pragma once

#include <memory>
#include <utility>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "peal/group/process_group.h"
#include "peal/train/gradient_reducer.h"

namespace peal::train {

/// While it lives, backward passes leave gradients on their rank, where they accumulate.
class NoSync final {
 public:
  explicit NoSync(GradientReducer& reducer)
      : reducer_(reducer), before_(reducer.set_sync(GradientReducer::Sync::kOff)) {}
  ~NoSync() { reducer_.set_sync(before_); }
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  GradientReducer& reducer_;
  GradientReducer::Sync before_;
};

/// A module whose parameters are, and stay, the same on every rank of a group:
///   auto net = std::make_shared<Net>();
///   peal::train::DistributedDataParallel model(net, group);
///   torch::optim::SGD optimizer(net->parameters(), 0.1);
///   ... optimizer.zero_grad(); loss(model.forward(x), y).backward(); optimizer.step();
///
/// At construction rank 0's parameters and buffers become everyone's. Every backward pass that
/// reaches a parameter averages: when backward() returns, on every rank,
///   grad = (grad_0 + grad_1 + ...) / n,
/// with the same bits. With batches of equal size and a mean loss that is the gradient of one
/// process on the whole batch. Then rank 0's buffers (as batch norm's statistics) become
/// everyone's. Gradients live in memory that peers map. Where optimizers zero them
/// (zero_grad(false)) instead of dropping them, no copy is made after the first pass. They are
/// overwritten by the next pass.
///
/// The module stays as it is and may be used directly; its keys, so also its checkpoints, are the
/// plain module's.
///
/// The module may change between two steps, in the same way on every rank: torch::load, to(dtype),
/// set_, set_data, freezing and unfreezing, replaced and added layers. The first backward pass
/// afterwards compares the modules, with their values, and averages. If the modules differ, it
/// throws mismatch on every rank and names the first parameter that does. A rank that alone has
/// loaded values is such a difference: call broadcast_parameters (parameters.h) on every rank after
/// the load. Two changes are not noticed: values that are written in place (weight.copy_(...)) on
/// some ranks only, and a module of which every trained parameter was replaced, if it is then used
/// directly and not by this class's forward().
/// Order: construction and every backward pass are collective. A group of one does nothing.
/// Threads: one at a time; backward passes must not be nested in each other.
/// Errors: mismatch (at construction, and in the pass after a change: the ranks' modules differ;
/// names the first parameter that does), usage (backward did not reach a parameter; see
/// UnusedParameters; or it came to one twice, after the bucket was sent), unsupported (parameters
/// that are not on the CPU, sparse gradients, create_graph), and those of all_reduce, which
/// backward() throws. Cost: one all_reduce of each bucket, sent as soon as it is complete, while
/// backward goes on; a parameter that is not reached holds its bucket and those after it back to
/// the end. The pass after a change: some small operations and a checksum of all parameters; where
/// types or shapes changed, new buckets and a second all_reduce. Source: Li et al. 2020, PyTorch
/// Distributed: Experiences on Accelerating Data Parallel Training.
template <class Module>
class DistributedDataParallel final {
 public:
  DistributedDataParallel(std::shared_ptr<Module> module,
                          ProcessGroupPtr group,
                          const DataParallelOptions& options = {})
      : module_(std::move(module)),
        reducer_(std::make_unique<GradientReducer>(module_, std::move(group), options)) {}
  /// A module that TORCH_MODULE has made.
  DistributedDataParallel(const torch::nn::ModuleHolder<Module>& holder,
                          ProcessGroupPtr group,
                          const DataParallelOptions& options = {})
      : DistributedDataParallel(holder.ptr(), std::move(group), options) {}

  /// The module's own. Communicates nothing.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    reducer_->watch_new_parameters();
    return module_->forward(std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }

  /// `model->parameters()`, `model->train()`, ...
  Module* operator->() const { return module_.get(); }
  Module& operator*() const { return *module_; }
  const std::shared_ptr<Module>& module() const { return module_; }

  /// { const auto no_sync = model.no_sync(); loss.backward(); }: backward without communication,
  /// for batches that are accumulated. The first backward pass afterwards averages the sums.
  [[nodiscard]] NoSync no_sync() { return NoSync(*reducer_); }

 private:
  std::shared_ptr<Module> module_;
  std::unique_ptr<GradientReducer> reducer_;
};

}  // namespace peal::train
