// Data parallelism: every rank has the whole model and a part of each batch. A training program
// wraps its module in this class.
#pragma once

#include <memory>
#include <utility>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "peal/group/process_group.h"
#include "peal/train/ddp/gradient_reducer.h"

namespace peal::train {

/// While this object lives, backward passes do not send gradients: they accumulate on each rank.
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
/// The constructor copies the parameters and buffers of rank 0 to all ranks. Every backward pass
/// that reaches a parameter averages. When backward() returns, on every rank,
///   grad = (grad_0 + grad_1 + ...) / n,
/// with the same bits. For batches of equal size and a mean loss, this is the gradient of one
/// process on the whole batch. After that, the buffers of rank 0 (such as batch norm's statistics)
/// are copied to all ranks. Gradients are in memory that peers map. If the optimizer zeroes the
/// gradients (zero_grad(false)) instead of releasing them, later passes make no copy. The next pass
/// overwrites the gradients.
///
/// The program may use the wrapped module directly. The module keeps its keys, so its checkpoints
/// are those of the plain module.
///
/// The module may change between two steps, in the same way on every rank: torch::load, to(dtype),
/// set_, set_data, freezing and unfreezing, replaced and added layers. The next backward pass
/// compares the modules with their values, and then averages. If the modules differ, it throws
/// mismatch on every rank and names the first parameter that differs. A load on a single rank is
/// such a difference: call broadcast_parameters (parameters.h) on every rank after the load. Two
/// changes are not noticed:
/// - values that only some ranks write in place (weight.copy_(...));
/// - the replacement of every trained parameter, if the program then uses the module directly and
///   not by this class's forward().
/// Order: construction and every backward pass are collective. A group of one does nothing.
/// Threads: one at a time; backward passes must not be nested in each other.
/// Errors: mismatch (at construction, and in the pass after a change: the modules of the ranks
///   differ; names the first parameter that differs), usage (backward did not reach a parameter,
///   see UnusedParameters; or it reached a parameter a second time, after its bucket was sent),
///   unsupported (parameters that are not on the CPU, sparse gradients, create_graph). backward()
///   also throws the errors of all_reduce.
/// Cost: one all_reduce for each bucket, sent as soon as the bucket is complete, while backward
///   continues. A parameter that is not reached delays its bucket and all later buckets until the
///   end of backward. The pass after a change: some small operations and a checksum of all
///   parameters; if types or shapes changed, also new buckets and a second all_reduce.
/// Source: Li et al. 2020, PyTorch Distributed: Experiences on Accelerating Data Parallel Training.
template <class Module>
class DistributedDataParallel final {
 public:
  DistributedDataParallel(std::shared_ptr<Module> module,
                          ProcessGroupPtr group,
                          const DataParallelOptions& options = {})
      : module_(std::move(module)),
        reducer_(std::make_unique<GradientReducer>(
            module_ ? tensors_of(module_, options.ignored) : nullptr, std::move(group), options)) {}
  /// For a module of TORCH_MODULE.
  DistributedDataParallel(const torch::nn::ModuleHolder<Module>& holder,
                          ProcessGroupPtr group,
                          const DataParallelOptions& options = {})
      : DistributedDataParallel(holder.ptr(), std::move(group), options) {}

  /// The forward function of the module. Does not communicate.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    reducer_->before_forward();
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

  /// { const auto no_sync = model.no_sync(); loss.backward(); } runs backward without
  /// communication, to accumulate several batches. The next backward pass averages the sums.
  [[nodiscard]] NoSync no_sync() { return NoSync(*reducer_); }

 private:
  std::shared_ptr<Module> module_;
  std::unique_ptr<GradientReducer> reducer_;
};

}  // namespace peal::train
