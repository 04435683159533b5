// Finds the folders with the limits of this process's cgroup and its ancestors, and reads the
// numbers in their files. Used to find the available CPU time and memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace peal {

/// The folders of this process's cgroup and its ancestors, from the inside out, that may limit
/// `controller` ("cpu", "memory"), for both cgroup versions. Some folders may be missing. `root`
/// contains /proc and /sys.
/// Cost: a file is read.
std::vector<std::filesystem::path> cgroups_of(std::string_view controller,
                                              const std::filesystem::path& root = "/");

/// The number at the beginning of a file; nothing without the file or for a word, such as "max".
std::optional<std::int64_t> number_in(const std::filesystem::path& file);

/// The number after the first word `word` of a file; nothing if the file has no such word.
std::optional<std::int64_t> number_after(std::string_view word, const std::filesystem::path& file);

/// Keeps the smaller limit in `least`. A limit without a value does not count.
template <class Limit>
void keep_least(std::optional<Limit>& least, const std::optional<Limit>& limit) {
  if (limit) least = least ? std::min(*least, *limit) : *limit;
}

}  // namespace peal
