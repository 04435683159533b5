// Where the limits of this process's cgroup and of those around it are written. Used by what asks
// how much CPU time and memory there is.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace peal {

/// The folders of this process's cgroup and of those around it, from the inside out, that may limit
/// what `controller` ("cpu", "memory") controls, of both versions; not all of them need to be
/// there. `root` is where /proc and /sys lie. Cost: a file is read.
std::vector<std::filesystem::path> cgroups_of(std::string_view controller,
                                              const std::filesystem::path& root = "/");

}  // namespace peal
