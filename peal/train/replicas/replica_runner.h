// The part of DataParallel that does not depend on the type of the module: its options, and the
// work on threads. Used by `DataParallel`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "peal/train/replicas/replica_set.h"
#include "peal/train/replicas/scatter_gather.h"

namespace peal::train {

class ReplicaThreads;

struct ReplicaOptions {
  /// The device of each replica, for example {torch::kCPU, torch::kCPU}. Replica 0 is the module,
  /// which must be on the first device. Empty: all CUDA devices for a module on CUDA, otherwise one
  /// replica on the CPU.
  std::vector<torch::Device> devices = {};
  /// The dimension of the samples, in arguments and outputs.
  std::int64_t dim = 0;
  /// Where the joined outputs are. Nothing: on the first device.
  std::optional<torch::Device> output_device = {};
  /// LibTorch's threads for each replica. 0: an equal share of the calling thread's number.
  int threads = 0;
};

/// Threads: one at a time.
class ReplicaRunner final {
 public:
  ReplicaRunner(std::shared_ptr<torch::nn::Module> module,
                const ReplicaOptions& options,
                ReplicaSet::Make make);
  ~ReplicaRunner();
  ReplicaRunner(const ReplicaRunner&) = delete;
  ReplicaRunner& operator=(const ReplicaRunner&) = delete;

  Split split(std::int64_t samples) const {
    return split_evenly(samples, options_.dim, set_.devices());
  }
  torch::nn::Module& replica(std::size_t index) const { return set_.replica(index); }
  void refresh(std::size_t used);
  /// Calls task(r) for the first `used` replicas, each on its thread and device. A replica has the
  /// thread-local state of the caller, the caller's current stream on its device, and random
  /// numbers of its own. Throws the error of the first replica that failed.
  void apply(std::size_t used, const std::function<void(std::size_t)>& task);

  std::int64_t dim() const { return options_.dim; }
  torch::Device output_device() const;
  ReplicaTimes& times() const { return *times_; }

 private:
  ReplicaOptions options_;
  ReplicaSet set_;
  std::unique_ptr<ReplicaThreads> threads_;                                 // null for one replica
  std::shared_ptr<ReplicaTimes> times_ = std::make_shared<ReplicaTimes>();  // backward writes too
};

}  // namespace peal::train
