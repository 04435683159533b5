// The files of a checkpoint that one rank writes. Used by save_checkpoint.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "peal/train/checkpoint/checkpoint.h"
#include "peal/train/checkpoint/save_checkpoint.h"
#include "peal/train/checkpoint/together.h"

namespace peal::train {

struct RankFile {
  std::string path = {};  // in the folder of the checkpoint
  TensorMap tensors = {};
  Metadata metadata = {};
  std::map<std::string, std::vector<std::int64_t>> offsets = {};  // empty: the tensors are whole
};

/// The files that this rank writes: training.safetensors (rank 0), model.safetensors and
/// optimizer.safetensors (rank 0) or this rank's files in the folders model and optimizer, and
/// ranks/rank-00000.safetensors for tensors of this rank alone.
/// Order: collective.
/// Errors: on every rank: usage (names, undefined tensors, a part where rank 0 writes whole
///   tensors), unsupported (tensors that a file cannot have), mismatch (ranks have parts that do
///   not fit, or rank 0 alone shall write but lacks tensors of other ranks). Those of the
///   operations.
/// Cost: some small operations; if all ranks write, an all_gather of the names and shapes of all
///   tensors.
std::vector<RankFile> rank_files(const Ranks& ranks, const Checkpoint& checkpoint, Writers writers);

/// The file of rank `rank` with its own tensors.
std::string file_of_rank(Rank rank);

}  // namespace peal::train
