// Finds changes of a wrapped module, and differences of the module between ranks.
#pragma once

#include <c10/core/Storage.h>

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include "peal/train/ddp/model_tensors.h"

namespace peal::train {

/// The parameters of a module at one moment.
class ModuleSnapshot {
 public:
  ModuleSnapshot() = default;
  explicit ModuleSnapshot(const ModelTensors& model);

  enum class Change : unsigned char {
    kNone,
    kMemory,  // the same tensors in other memory, as after a load: values may differ
    kLayout,  // an added, removed or replaced parameter, other type, shape, device, or (un)frozen
  };
  /// The change since the snapshot. Does not notice values that were written in place.
  /// Cost: a check of each parameter; allocates nothing.
  Change change(const ModelTensors& now) const;

  /// A line for each parameter and buffer of a module, for example
  /// "conv.weight (Float, shape [4, 1, 3, 3], strides [9, 9, 3, 1])". Modules with the same layout
  /// have the same lines on every rank. The line of a parameter that is another tensor than in the
  /// snapshot has the word "replaced".
  std::vector<std::string> describe(const ModelTensors& now) const;

 private:
  struct Parameter {
    Parameter(std::string key, const torch::Tensor& value);
    bool has_layout_of(const torch::Tensor& value) const;
    bool has_memory_of(const torch::Tensor& value) const;

    std::string name;
    torch::Tensor tensor;
    torch::ScalarType type;
    torch::Device device;
    torch::Layout layout;
    std::vector<std::int64_t> sizes, strides;
    bool requires_grad;
    // Weak, so that released memory is freed, and its address is not reused.
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::int64_t offset;
  };

  std::vector<Parameter> parameters_;
};

/// A line for each parameter, for example "conv.weight (checksum 5f0c...)". Ranks with the same
/// bits have the same lines.
/// Errors: unsupported (a parameter that is not dense).
/// Cost: reads all values.
std::vector<std::string> checksums(const ModelTensors& model);

}  // namespace peal::train
