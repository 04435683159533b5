// Keeps tensors in memory that peers of the host can map. Called by ShardedOptimizer, which sends
// its parameters after each step.
#pragma once

#include <cstddef>
#include <unordered_map>

#include <torch/types.h>

#include "peal/group/process_group.h"

namespace peal::train {

/// Threads: one at a time, and no other thread writes to a tensor during `keep`.
class RegisteredTensors final {
 public:
  explicit RegisteredTensors(ProcessGroupPtr group) : group_(std::move(group)) {}

  /// Registers the memory of a tensor until this object ends, or until the tensor has other memory
  /// at the next call. Does nothing if it is registered already. Memory that cannot be registered
  /// stays as it is, and operations on it need a copy.
  void keep(const torch::Tensor& tensor);

 private:
  struct Entry {
    torch::Tensor tensor;  // keeps the memory; destroyed after the registration
    const void* memory = nullptr;
    std::size_t bytes = 0;
    Registration registration{};
  };

  ProcessGroupPtr group_;
  std::unordered_map<const c10::TensorImpl*, Entry> entries_;
};

}  // namespace peal::train
