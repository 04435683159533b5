// A module and its replicas. Replica 0 is the module itself. Used by `DataParallel`.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "peal/base/clock.h"

namespace peal::train {

/// How long the parts of the last passes took on the calling thread.
struct ReplicaTimes {
  Duration scatter{};  // the inputs are split
  Duration copy{};     // parameters and buffers are copied to the replicas
  Duration apply{};    // the replicas compute
  Duration gather{};   // the outputs are joined
  Duration reduce{};   // the gradients of the replicas are added, in the last backward pass
};

class ReplicaSet final {
 public:
  /// Makes another module of the same structure on a device. Its values do not matter.
  using Make = std::function<std::shared_ptr<torch::nn::Module>(const torch::Device& device)>;

  /// `devices` has the device of each replica; the module must be on the first. Does not change the
  /// state of LibTorch's random generator.
  /// Errors: usage (the module is on another device; a replica cannot be made, or has other
  ///   parameters or buffers).
  ReplicaSet(std::shared_ptr<torch::nn::Module> module,
             std::vector<torch::Device> devices,
             Make make);

  const std::vector<torch::Device>& devices() const { return devices_; }
  torch::nn::Module& replica(std::size_t index) const { return *replicas_[index]; }

  /// Copies parameters, buffers and the mode (train or eval) of the module to the first `used`
  /// replicas. In grad mode, links the parameters, so that backward passes add the gradients of the
  /// replicas to those of the module. A graph of an earlier pass stays valid.
  ///
  /// If the module has new parameters or buffers, or if a parameter is frozen that was not, makes
  /// the replicas again.
  /// Cost: a copy of the module for each replica.
  void refresh(std::size_t used, const std::shared_ptr<ReplicaTimes>& times);

 private:
  /// A parameter or buffer, and its copy in each replica but the first.
  struct Copies {
    torch::Tensor original;
    std::vector<torch::Tensor> copies;
  };

  void make_replicas();
  void pair_tensors();
  bool has_changed() const;
  void copy_modes(std::size_t used) const;
  void copy_values(std::size_t used) const;
  void link(std::size_t used, const std::shared_ptr<ReplicaTimes>& times) const;

  std::vector<torch::Device> devices_;
  Make make_;
  std::vector<std::shared_ptr<torch::nn::Module>> replicas_;
  std::vector<Copies> parameters_;
  std::vector<Copies> buffers_;
};

}  // namespace peal::train
