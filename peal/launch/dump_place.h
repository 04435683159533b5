// Where the records of a launch that failed are kept when its private folder goes.
#pragma once

#include <filesystem>
#include <string>

namespace peal::launch {

/// Of the dumps in the folder that a user's launches have in common.
inline constexpr std::size_t kDumpsKept = 16;

/// In the user's folder of logs, if there is one; else JOB.dump in `parent`/peal-UID, which is made
/// if need be, and in which the oldest dumps make room. Errors: resource, where that is a folder
/// which others own or can reach.
std::string place_for_dump(const std::string& log_directory,
                           const std::string& job,
                           const std::filesystem::path& parent);

/// A folder of logs is of the launch that begins now.
void remove_former_dump(const std::string& log_directory);

}  // namespace peal::launch
