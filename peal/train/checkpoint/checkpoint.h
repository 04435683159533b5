// The state of a training run as a value. save_checkpoint.h writes it, and checkpoint_reader.h
// reads it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

#include "peal/train/checkpoint/tensor_map.h"
#include "peal/train/checkpoint/values.h"
#include "peal/train/optim/optimizer_state.h"

namespace peal::train {

/// A tensor, or this rank's part of it: from `offsets` on, of a tensor of the shape `shape`.
struct TensorPart {
  TensorPart() = default;
  TensorPart(torch::Tensor whole)  // NOLINT(google-explicit-constructor): most tensors are whole
      : data(std::move(whole)) {
    if (!data.defined()) return;
    shape = data.sizes().vec();
    offsets.resize(shape.size());
  }
  TensorPart(torch::Tensor part,
             std::vector<std::int64_t> part_offsets,
             std::vector<std::int64_t> whole_shape)
      : data(std::move(part)), offsets(std::move(part_offsets)), shape(std::move(whole_shape)) {}

  torch::Tensor data;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> shape;
};

using TensorParts = std::map<std::string, TensorPart>;

/// Tensors are shared with the module and the optimizer, so the next step changes them.
///   Checkpoint now{.step = step};
///   now.models["model"] = module_tensors(*net);
///   now.optimizers["optimizer"] = read_optimizer_state(optimizer, net->named_parameters());
///   now.values.set("epoch", epoch);
struct Checkpoint {
  std::int64_t step = 0;
  /// The tensors of each module. The name is that of a file: "model" is model.safetensors. It
  /// consists of letters, digits, - and _.
  std::map<std::string, TensorParts> models = {};
  /// By names of files, as for models. If ranks have the fields of different parameters, as with
  /// an optimizer that shares its state out, all ranks write (SaveOptions).
  std::map<std::string, OptimizerState> optimizers = {};
  /// Other tensors that are the same on every rank.
  TensorMap tensors = {};
  /// Tensors of this rank alone, such as the state of its random generator.
  TensorMap rank_tensors = {};
  /// Of rank 0: the epoch, the position of the sampler.
  Values values = {};
};

}  // namespace peal::train
