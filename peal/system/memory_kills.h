// Whether the kernel has killed processes because memory ran out (its OOM killer). Used by the
// guard to explain why a rank has ended by SIGKILL.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "peal/base/units.h"

namespace peal {

/// How many processes of this process's cgroup the kernel has killed because memory ran out:
/// because of a limit, or because the machine has no more memory. The kernel counts before it
/// kills. Nothing if the kernel does not count, as without a memory cgroup. `root` contains /proc
/// and /sys. Cost: some files are read. Source: the kernel's cgroup-v2.rst (memory.events) and
/// cgroup-v1/memory.rst (memory.oom_control).
std::optional<std::int64_t> memory_kills(const std::filesystem::path& root = "/");

/// The least memory limit of this process's cgroup and its ancestors; nothing without a limit.
/// Cost: some files are read.
std::optional<Bytes> memory_limit(const std::filesystem::path& root = "/");

}  // namespace peal
