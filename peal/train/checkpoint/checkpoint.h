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

/// Where the part of a tensor lies that this rank has.
struct Shard {
  std::vector<std::int64_t> offsets = {};  // the first index in each dimension
  std::vector<std::int64_t> shape = {};    // of the whole tensor
};

/// Tensors are shared with the module and the optimizer, so the next step changes them.
///   Checkpoint now{.step = step};
///   now.models["model"] = module_tensors(*net);
///   now.optimizers["optimizer"] = read_optimizer_state(optimizer, net->named_parameters());
///   now.values.set("epoch", epoch);
struct Checkpoint {
  std::int64_t step = 0;
  /// The tensors of each module. The name is that of a file: "model" is model.safetensors. It
  /// consists of letters, digits, - and _.
  std::map<std::string, TensorMap> models = {};
  /// By names of files, as for models. If each rank has the state of other parameters, as the local
  /// parts of a sharded optimizer, all ranks write (Writers::kAllRanks). Groups of the same index
  /// are then one group.
  std::map<std::string, OptimizerState> optimizers = {};
  /// The tensors of which this rank has only a part, by file and name: shards["model"]["w"],
  /// shards["optimizer"]["w.exp_avg"]. Then all ranks write.
  std::map<std::string, std::map<std::string, Shard>> shards = {};
  /// Other tensors that are the same on every rank.
  TensorMap tensors = {};
  /// Tensors of this rank alone, such as the state of its random generator.
  TensorMap rank_tensors = {};
  /// Of rank 0: the epoch, the position of the sampler.
  Values values = {};
};

}  // namespace peal::train
