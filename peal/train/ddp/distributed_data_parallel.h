// Data parallelism: every rank has the whole model and a part of each batch. A training program
// wraps its module in this class.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "peal/group/process_group.h"
#include "peal/train/ddp/data_parallel_options.h"
#include "peal/train/ddp/gradient_reducer.h"

namespace peal::train {

/// While this object lives, backward passes that begin do not send gradients: they accumulate on
/// each rank.
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
/// with the same bits; DataParallelOptions::average selects another formula. For batches of equal
/// size and a mean loss, this is the gradient of one process on the whole batch. After that, the
/// buffers of rank 0 (such as batch norm's statistics) are copied to all ranks.
///
/// Gradients are in memory once, in buckets that peers map, also if zero_grad() drops them: the
/// next pass writes them to the same memory. A gradient tensor that is kept from an earlier pass
/// is overwritten.
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
///
/// A backward pass may contain others, as checkpointing does: the outermost one averages. Then no
/// bucket is sent before its end, unless Graph::kStatic is set.
/// Order: construction and every backward pass are collective. A group of one does nothing, unless
///   the options ask for weights or a hook. Two wrapped models of one group in the same backward
///   pass must be reached in the same order on all ranks; otherwise give each its own group.
/// Threads: one at a time.
/// Errors: mismatch (at construction, and in the pass after a change: the modules of the ranks
///   differ; names the first parameter that differs), usage (a parameter that was not reached, with
///   UnusedParameters::kAreErrors; a parameter that was reached again after its bucket was sent),
///   unsupported (parameters on several devices, create_graph). backward() also throws the
///   errors of all_reduce. After an exception in forward, or in backward on every rank at the same
///   place, training continues with the next pass.
/// Cost: one all_reduce for each bucket. The buckets are in the memory of the host: gradients on a
///   GPU are copied there and back. The all_reduce starts when the bucket is complete, while
///   backward continues. It runs at the end of backward if the ranks are on one host with one core
///   each and there is no hook (docs/decisions/0045). At the end of backward, one more of 8 bytes
///   for each parameter. A parameter that is not reached delays its bucket and all later buckets
///   until the end of backward. A sparse gradient is sent at the end, by all_gather. The pass after
///   a change: some small operations and a checksum of all parameters; if types or shapes changed,
///   also new buckets and a second all_reduce.
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

  /// The forward function of the module. Does not communicate. For Average::kBySamples, the next
  /// backward pass has as many samples as the first argument that is a tensor has rows. Without
  /// such an argument, call set_samples.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    reducer_->before_forward();
    if (const auto rows = first_rows(arguments...); rows && torch::GradMode::is_enabled()) {
      reducer_->set_samples(*rows);
    }
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

  /// For Average::kBySamples: the number of samples of the next backward pass, if it is not the
  /// number of rows of forward's argument. Call it between forward() and backward().
  void set_samples(std::int64_t samples) { reducer_->set_samples(samples); }

  /// Takes part in a backward pass of the other ranks, for a rank without data; see uneven.h.
  /// Returns false if no rank had data.
  bool pass_without_data() { return reducer_->pass_without_data(); }

  /// Makes the buffers equal on all ranks, as a backward pass does. For programs that run forward
  /// in training mode without backward. Order: collective.
  void sync_buffers() { reducer_->sync_buffers(); }

  GradientReducer& reducer() { return *reducer_; }

 private:
  static std::optional<std::int64_t> first_rows() { return std::nullopt; }
  template <class First, class... Others>
  static std::optional<std::int64_t> first_rows(const First& first, const Others&... others) {
    if constexpr (std::is_convertible_v<const First&, const torch::Tensor&>) {
      const torch::Tensor& tensor = first;
      if (tensor.defined() && tensor.dim() > 0) return tensor.size(0);
    }
    return first_rows(others...);
  }

  std::shared_ptr<Module> module_;
  std::unique_ptr<GradientReducer> reducer_;
};

}  // namespace peal::train
