// Reads a checkpoint that save_checkpoint has written, on any number of ranks. Each rank reads on
// its own what it needs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <torch/nn/module.h>

#include "peal/base/units.h"
#include "peal/train/checkpoint/stored_tensors.h"
#include "peal/train/checkpoint/tensor_map.h"
#include "peal/train/checkpoint/values.h"
#include "peal/train/optim/optimizer_state.h"

namespace peal::train {

///   const CheckpointReader saved(*latest_checkpoint(*group, folder));
///   saved.load_module("model", *net);
///   load_optimizer_state(optimizer, net->named_parameters(), saved.optimizer("optimizer"));
///   epoch = saved.values().number<int>("epoch");
/// Errors of all members: usage (no such part, a missing file), mismatch (a damaged file; a file
///   that belongs to another checkpoint), resource. Texts begin with the path.
/// Threads: any number at once.
class CheckpointReader final {
 public:
  /// Opens the folder of one checkpoint. Errors: also unsupported (of a newer peal).
  explicit CheckpointReader(std::filesystem::path path);
  ~CheckpointReader();

  const std::filesystem::path& path() const { return path_; }
  std::int64_t step() const;
  /// The number of ranks that saved it.
  int ranks() const;
  const Values& values() const;

  /// The tensors of a model: Checkpoint::models.
  StoredTensors model(const std::string& name) const;
  /// Copies them into the module, as load_module (module_tensors.h).
  void load_module(const std::string& name, torch::nn::Module& module) const;

  /// The state of an optimizer. With `parameters`, only the fields of these; the groups always have
  /// all parameters.
  /// Cost: memory for the fields.
  OptimizerState optimizer(const std::string& name,
                           const std::optional<std::set<std::string>>& parameters = {}) const;

  /// Checkpoint::tensors.
  TensorMap tensors() const;
  /// Checkpoint::rank_tensors of that rank; empty if it had none.
  TensorMap rank_tensors(Rank rank) const;

 private:
  struct Contents;

  StoredTensors open_part(const std::string& name, std::int64_t tensors) const;

  std::filesystem::path path_;
  std::unique_ptr<const Contents> contents_;
};

}  // namespace peal::train
