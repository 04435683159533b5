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

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/group/process_group.h"
#include "peal/train/checkpoint/stored_tensors.h"
#include "peal/train/checkpoint/tensor_map.h"
#include "peal/train/checkpoint/values.h"
#include "peal/train/optim/optimizer_state.h"

namespace peal::train {

///   if (const auto saved = open_latest_checkpoint(*group, folder)) {
///     saved->load_module("model", *net);
///     load_optimizer_state(optimizer, net->named_parameters(), saved->optimizer("optimizer"));
///     epoch = saved->values().number<int>("epoch");
///   }
/// Errors of all members: usage (no such part), resource (a missing or damaged file; a file that
///   belongs to another checkpoint). Texts begin with the path.
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
  /// Opens each file that a rank reads: those of all models and optimizers, and of this rank.
  /// Damaged tensors are not noticed.
  void check_files(Rank rank) const;
  /// Checkpoint::rank_tensors of that rank; empty if it had none.
  TensorMap rank_tensors(Rank rank) const;

 private:
  struct Contents;

  StoredTensors open_part(const std::string& name, std::int64_t tensors) const;
  std::optional<StoredTensors> open_rank_file(Rank rank) const;  // nothing: the rank had no tensors

  std::filesystem::path path_;
  std::unique_ptr<const Contents> contents_;
};

/// The latest checkpoint of the folder that rank 0 finds, on every rank; null if there is none.
/// Checks its files on every rank (CheckpointReader::check_files), and never takes an older one.
/// Order: collective.
/// Errors: on every rank the same: resource (a file is missing or damaged: the text names the
///   checkpoint to remove, and the older one that is then the latest), unsupported (of a newer
///   peal). Those of latest_checkpoint.
std::unique_ptr<const CheckpointReader> open_latest_checkpoint(ProcessGroup& group,
                                                               const std::filesystem::path& folder,
                                                               Timeout timeout = kGroupTimeout);

}  // namespace peal::train
