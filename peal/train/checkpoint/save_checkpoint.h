// Saves the state of a training run. Either the new checkpoint is whole and durable, or the last
// one is still there.
#pragma once

#include <filesystem>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"
#include "peal/train/checkpoint/checkpoint.h"

namespace peal::train {

/// Which ranks write the tensors of models and optimizers.
enum class Writers : unsigned char {
  kRank0,     // rank 0 has all tensors, and writes a file for each model and optimizer; the other
              // ranks have the same tensors of a file, or none
  kAllRanks,  // each rank writes a part; those of tensors that several ranks have are shared out
};

struct SaveOptions {
  Writers writers = Writers::kRank0;
  /// The number of checkpoints that stay in the folder: the new one, and those with the largest
  /// steps. 0: all stay.
  int keep = 0;
  /// For each operation of the group. A rank that writes slowly lets the others wait.
  Timeout timeout = kGroupTimeout;
};

/// Writes the checkpoint into the sub-folder "step-00000120" of `folder`, and returns the path. The
/// sub-folder appears when the data of all ranks is durable, and replaces one of the same step. A
/// crash, a full disk or a failed rank at any moment leaves the earlier checkpoints.
///   model.safetensors         the tensors of a model, by the names of the module: for Python's
///                             safetensors.torch.load_file
///   optimizer.safetensors     "<parameter>.<field>", for example "conv.weight.exp_avg"
///   training.safetensors      `tensors`; values and options in its metadata
///   ranks/rank-00000.safetensors  the tensors of one rank alone
/// If all ranks write, each model and optimizer is a folder of this name with a file of each rank,
/// for torch's HuggingFaceStorageReader.
/// Order: collective. All ranks pass the same step and options, and a folder that they share; for
///   kRank0 without rank_tensors, only rank 0 needs the folder.
/// Errors: on every rank the same: usage and unsupported (names, tensors that a file cannot have),
///   mismatch (different steps; the ranks have parts that do not make up a tensor; rank 0 alone
///   shall write, but lacks tensors of others), resource (the disk is full; a checkpoint of this
///   step exists, and the file system cannot exchange two names, such as NFS; the checkpoint is
///   saved, but an old one cannot be removed). The text begins with the rank: "rank 2: cannot write
///   ...". The group stays usable. Those of the operations.
/// Cost: writes and syncs all files; some small operations, and with kAllRanks an all_gather of the
///   names of all tensors.
///
/// Two jobs should not share a folder. They do not disturb each other while they write, but replace
/// each other's checkpoints of the same step, and remove each other's old ones.
std::filesystem::path save_checkpoint(ProcessGroup& group,
                                      const std::filesystem::path& folder,
                                      const Checkpoint& checkpoint,
                                      const SaveOptions& options = {});

/// Makes the folder, and checks that every rank can write there. Call it before a long training, so
/// that the first save_checkpoint does not fail.
/// Order: collective.
/// Errors: on every rank the same: resource (the folder cannot be made or written),
///   usage (the ranks do not share it). Those of the operations.
/// Cost: a file for each rank, which is removed again; some small operations.
void prepare_checkpoint_folder(ProcessGroup& group,
                               const std::filesystem::path& folder,
                               Timeout timeout = kGroupTimeout);

/// save_checkpoint for a program without a group.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder,
                                      const Checkpoint& checkpoint,
                                      const SaveOptions& options = {});

}  // namespace peal::train
