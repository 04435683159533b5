#include "peal/system/memory_kills.h"

#include "peal/system/cgroups.h"

namespace peal {
namespace {

/// "No limit" in version 1 is the largest number of whole pages.
constexpr Bytes kNoLimit{std::int64_t{1} << 60};

}  // namespace

std::optional<std::int64_t> memory_kills(const std::filesystem::path& root) {
  for (const auto& group : cgroups_of("memory", root)) {
    for (const char* file : {"memory.events", "memory.oom_control"}) {
      if (const auto kills = number_after("oom_kill", group / file)) return kills;
    }
  }
  return std::nullopt;
}

std::optional<Bytes> memory_limit(const std::filesystem::path& root) {
  std::optional<Bytes> least;
  for (const auto& group : cgroups_of("memory", root)) {
    for (const char* file : {"memory.max", "memory.limit_in_bytes"}) {
      const auto limit = number_in(group / file);
      if (limit && Bytes(*limit) < kNoLimit) keep_least(least, std::optional(Bytes(*limit)));
    }
  }
  return least;
}

}  // namespace peal
