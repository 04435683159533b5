// Writes the files of a checkpoint and publishes them. Used by save_checkpoint.cpp and
// async_checkpointer.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "peal/train/checkpoint/rank_files.h"
#include "peal/train/checkpoint/together.h"

namespace peal::train {

/// Writes this rank's files, and publishes the checkpoint when those of all ranks are durable.
/// Returns its path. `keep`: as SaveOptions.
/// Order: collective. Errors: as save_checkpoint.
std::filesystem::path publish(const Ranks& ranks,
                              const std::filesystem::path& folder,
                              std::int64_t step,
                              const std::vector<RankFile>& files,
                              int keep);

/// Order, Errors: as prepare_checkpoint_folder.
void check_folder(const Ranks& ranks, const std::filesystem::path& folder);

}  // namespace peal::train
