#include "peal/bench/free_memory.h"

#include <algorithm>
#include <string_view>

#include "peal/system/cgroups.h"

namespace peal::bench {
namespace {

using Path = std::filesystem::path;

/// The names of a cgroup's files.
struct Names {
  const char* limit;
  const char* used;
  std::string_view cache;  // in memory.stat
};
constexpr Names kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Names kVersion2{"memory.max", "memory.current", "inactive_file"};

std::optional<Bytes> left_by(const Path& group, const Names& names) {
  const auto limit = number_in(group / names.limit);
  const auto used = number_in(group / names.used);
  if (!limit || !used) return std::nullopt;
  const std::int64_t cache = number_after(names.cache, group / "memory.stat").value_or(0);
  return Bytes(std::max<std::int64_t>(*limit - *used + cache, 0));
}

}  // namespace

std::optional<Bytes> free_memory(const Path& root) {
  std::optional<Bytes> least;
  const std::int64_t kibibytes = number_after("MemAvailable:", root / "proc/meminfo").value_or(0);
  if (kibibytes > 0) least = kibibytes * 1_KiB;
  for (const Path& group : cgroups_of("memory", root)) {
    keep_least(least, left_by(group, kVersion1));
    keep_least(least, left_by(group, kVersion2));
  }
  return least;
}

}  // namespace peal::bench
