// Records an operation for autograd. Used by operations.cpp.
#pragma once

#include <functional>
#include <vector>

#include <torch/types.h>

namespace peal::hvd {

/// Maps gradients of the results to gradients of the tensors.
using Gradient =
    std::function<std::vector<torch::Tensor>(const std::vector<torch::Tensor>& gradients)>;

struct Run {
  std::vector<torch::Tensor> results;
  Gradient gradient;
};

/// Whether autograd records operations on these tensors.
bool is_recorded(at::TensorList tensors);

/// The results of `run`; their backward calls its gradient. An error of the gradient leaves
/// backward by Context::leave_backward.
std::vector<torch::Tensor> recorded(at::TensorList tensors, std::function<Run()> run);

}  // namespace peal::hvd
