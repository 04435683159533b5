// Data parallelism in one process: a model on several devices, one thread for each. A training
// program wraps its module in this class.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "peal/base/clock.h"
#include "peal/train/replicas/replica_runner.h"
#include "peal/train/replicas/replica_set.h"
#include "peal/train/replicas/scatter_gather.h"

namespace peal::train {

/// A module that computes each batch on several devices:
///   peal::train::DataParallel model(net, {.devices = {torch::kCPU, torch::kCPU}});
///   torch::optim::SGD optimizer(net->parameters(), 0.1);
///   ... optimizer.zero_grad(); loss(model.forward(x), y).backward(); optimizer.step();
///
/// forward(x) = the rows of module.forward(x), where replica r computes the r-th part of x:
///   1. splits the tensors among the arguments along `dim`; other arguments go to all replicas,
///   2. copies the parameters and buffers of the module to the replicas,
///   3. calls forward() of each replica, each on a thread of its own,
///   4. joins the outputs on the output device.
/// Backward adds the gradients of all replicas to those of the module. So gradients are those of
/// the module on the whole batch, as far as rows do not depend on each other. A loss that each
/// replica computes arrives as a vector; its mean is that of the batch for equal parts only.
///
/// Replicas are kept between passes. A batch of fewer samples than replicas uses fewer replicas.
/// Replica 0 is the module: it keeps the buffers that forward() writes, such as batch norm's
/// statistics, and those of other replicas are dropped. All replicas are in the mode of the module
/// (train or eval). Grad mode, inference mode and autocast of the caller hold in the replicas.
/// Random numbers: a pass takes one number from LibTorch's generator for CPUs, and each replica has
/// a stream that follows from this number. So dropout depends on torch::manual_seed and on the
/// number of replicas, and not on the timing of threads.
///
/// A replica is a module->clone(), which needs torch::nn::Cloneable. For a module without it, pass
/// a function that makes another one. Members that are not parameters, buffers or the mode, and are
/// not tensors, keep the values that the replica was made with.
///
/// On CPUs, replicas share the cores and the calling thread does all else, with backward: one
/// process with several intra-op threads is as fast, and DistributedDataParallel is faster.
///
/// On a GPU, a replica computes on the caller's current stream of this GPU, so it is in order with
/// the caller's kernels. LibTorch has one generator for each GPU: dropout depends on the timing of
/// threads if replicas share a GPU. Some replicas may be on the CPU and others on GPUs.
/// Threads: one at a time. It starts threads, so peal::spawn must come before.
/// Errors: usage (see ReplicaSet; a GPU that is not there; tensors that cannot be split). An error
///   of a replica names the replica and has the exception nested in it. It is resource if memory is
///   missing, and else usage. An Error of a replica keeps its kind.
/// Cost: each pass copies the module to each other replica, and backward adds as many gradients.
/// Source: Python's torch.nn.DataParallel.
template <class Module>
class DataParallel final {
 public:
  /// Makes another module of the same structure; its values do not matter.
  using Make = std::type_identity_t<std::function<std::shared_ptr<Module>()>>;

  DataParallel(std::shared_ptr<Module> module,
               const ReplicaOptions& options = {},
               const Make& make = {})
      : module_(std::move(module)), runner_(module_, options, maker(make)) {}
  /// For a module of TORCH_MODULE.
  DataParallel(const torch::nn::ModuleHolder<Module>& holder,
               const ReplicaOptions& options = {},
               const Make& make = {})
      : DataParallel(holder.ptr(), options, make) {}

  template <class... Arguments>
  auto forward(Arguments&&... arguments);
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }

  /// `model->parameters()`, `model->train()`, ...
  Module* operator->() const { return module_.get(); }
  Module& operator*() const { return *module_; }
  const std::shared_ptr<Module>& module() const { return module_; }

  /// The times of the last pass.
  const ReplicaTimes& times() const { return runner_.times(); }

 private:
  static ReplicaSet::Make maker(const Make& make) {
    if (!make) return {};
    return [make](const torch::Device&) -> std::shared_ptr<torch::nn::Module> { return make(); };
  }

  std::shared_ptr<Module> module_;
  ReplicaRunner runner_;
};

template <class Module>
template <class... Arguments>
auto DataParallel<Module>::forward(Arguments&&... arguments) {
  using Output = std::remove_cvref_t<decltype(module_->forward(
      std::declval<std::remove_cvref_t<Arguments>>()...))>;
  ReplicaTimes& times = runner_.times();
  const TimePoint start = Clock::now();
  SampleCount samples(runner_.dim());
  (samples.add(arguments), ...);
  const Split split = runner_.split(samples.count());
  auto parts = std::make_tuple(scatter(arguments, split)...);
  const TimePoint scattered = Clock::now();
  runner_.refresh(split.count());
  const TimePoint copied = Clock::now();
  std::vector<std::optional<Output>> outputs(split.count());
  runner_.apply(split.count(), [&](std::size_t index) {
    auto& replica = dynamic_cast<Module&>(runner_.replica(index));
    outputs[index] =
        std::apply([&](auto&... of) { return replica.forward(std::move(of[index])...); }, parts);
  });
  const TimePoint applied = Clock::now();
  std::vector<Output> values;
  for (std::optional<Output>& output : outputs) values.push_back(std::move(*output));
  Output joined = gather_outputs(std::move(values), runner_.dim(), runner_.output_device());
  times.scatter = scattered - start;
  times.copy = copied - scattered;
  times.apply = applied - copied;
  times.gather = Clock::now() - applied;
  return joined;
}

}  // namespace peal::train
