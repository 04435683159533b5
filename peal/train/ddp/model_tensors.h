// The parameters and buffers of a model, of a module of LibTorch or of Python.
#pragma once

#include <c10/util/FunctionRef.h>

#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "peal/train/tensors/typed_lists.h"

namespace peal::train {

/// Read again in each backward pass, because a program may change its model.
class ModelTensors {
 public:
  virtual ~ModelTensors() = default;

  /// A tensor that the model has under several names is in the list under each.
  virtual std::vector<NamedTensor> parameters() const = 0;
  virtual std::vector<NamedTensor> buffers() const = 0;
  /// Calls `visit` for each tensor of parameters(), in that order. Allocates no memory.
  virtual void visit_parameters(c10::function_ref<void(const torch::Tensor&)> visit) const = 0;
};

/// Leaves out the parameters and buffers with the names in `ignored`.
std::unique_ptr<ModelTensors> tensors_of(std::shared_ptr<const torch::nn::Module> module,
                                         std::vector<std::string> ignored = {});

}  // namespace peal::train
