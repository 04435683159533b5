// The tensors of a module by name, for checkpoints and for files of Python.
#pragma once

#include <torch/nn/module.h>

#include "peal/train/checkpoint/checkpoint.h"
#include "peal/train/checkpoint/stored_tensors.h"
#include "peal/train/checkpoint/tensor_map.h"

namespace peal::train {

/// The parameters and buffers, by the keys of Python's state_dict: "conv.weight". A tensor with
/// several names is there under each of them. The tensors share the memory of the module.
TensorMap module_tensors(const torch::nn::Module& module);

/// Copies the tensors into the parameters and buffers of the module.
/// Errors: usage, with a line for each difference: a tensor that is missing or unexpected, another
///   shape or type. Then the module has not changed. Those of StoredTensors::read.
/// Cost: memory for one tensor at a time, if they are stored.
void load_module(torch::nn::Module& module, const TensorMap& tensors);
void load_module(torch::nn::Module& module, const StoredTensors& tensors);

}  // namespace peal::train
