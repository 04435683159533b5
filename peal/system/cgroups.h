// Finds the folders with the limits of this process's cgroup and its ancestors. Used to find the
// available CPU time and memory.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace peal {

/// The folders of this process's cgroup and its ancestors, from the inside out, that may limit
/// `controller` ("cpu", "memory"), for both cgroup versions. Some folders may be missing. `root`
/// contains /proc and /sys.
/// Cost: a file is read.
std::vector<std::filesystem::path> cgroups_of(std::string_view controller,
                                              const std::filesystem::path& root = "/");

}  // namespace peal
