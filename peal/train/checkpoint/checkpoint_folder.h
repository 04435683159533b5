// The checkpoints in a folder: a sub-folder "step-00000120" for each. A sub-folder has this name
// only when it is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"

namespace peal::train {

/// "step-00000120". Errors: usage (a negative step).
std::string checkpoint_name(std::int64_t step);

/// The complete checkpoints, by step; empty if there is no such folder.
/// Errors: resource (the folder cannot be read).
std::map<std::int64_t, std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

/// The one with the largest step; nothing if there is no checkpoint.
/// Errors: as list_checkpoints.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

/// The latest checkpoint that rank 0 finds, on every rank, because another job could publish one
/// meanwhile. The path begins with this rank's `folder`.
/// Order: collective.
/// Errors: as list_checkpoints, and those of broadcast.
std::optional<std::filesystem::path> latest_checkpoint(ProcessGroup& group,
                                                       const std::filesystem::path& folder,
                                                       Timeout timeout = kGroupTimeout);

}  // namespace peal::train
