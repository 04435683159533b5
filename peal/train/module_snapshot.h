// Whether a module has changed since it was wrapped, and whether it is the same on all ranks.
#pragma once

#include <c10/core/Storage.h>

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace peal::train {

/// The parameters of a module as they were at one moment.
class ModuleSnapshot {
 public:
  ModuleSnapshot() = default;
  explicit ModuleSnapshot(const torch::nn::Module& module);

  enum class Change : unsigned char {
    kNone,
    kMemory,  // the same tensors in other memory, so their values may be others: a load, say
    kLayout,  // a parameter more or less, another tensor, type, shape or device, or (un)frozen
  };
  /// What has changed since the snapshot. Values that were written in place are not noticed.
  /// Cost: a look at each parameter, about 0.2 us.
  Change change(const torch::nn::Module& now) const;

  /// The parameters and buffers of a module, a line each, the same on every rank where the modules
  /// have the same layout: "conv.weight (Float, shape [4, 1, 3, 3], strides [9, 9, 3, 1])". The
  /// line of a parameter that is another tensor than in the snapshot says "replaced".
  std::vector<std::string> describe(const torch::nn::Module& now) const;

 private:
  struct Parameter {
    Parameter(std::string key, const torch::Tensor& value);
    bool has_layout_of(const std::string& key, const torch::Tensor& value) const;
    bool has_memory_of(const torch::Tensor& value) const;

    std::string name;
    torch::Tensor tensor;
    torch::ScalarType type;
    torch::Device device;
    torch::Layout layout;
    std::vector<std::int64_t> sizes, strides;
    bool requires_grad;
    // Weakly, so that memory that was given up is freed, and its address does not return.
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::int64_t offset;
  };

  std::vector<Parameter> parameters_;
};

/// A line for each parameter, the same on every rank where the values are the same to the last bit:
/// "conv.weight (checksum 5f0c...)".
/// Errors: unsupported (a parameter that is not on the CPU, or not dense). Cost: reads all values.
std::vector<std::string> checksums(const torch::nn::Module& module);

}  // namespace peal::train
