// How much memory can still be had. Asked before much of it is taken: who takes more than there is
// gets no error, but is killed, or somebody else is.
#pragma once

#include <filesystem>
#include <optional>

#include "peal/base/units.h"

namespace peal {

/// The least of what the machine has available (MemAvailable: without swapping) and what the
/// limits of this process's cgroup and of those around it leave, caches of files counted as free.
/// Nothing where none of them is said. Shared memory without a name (memfd) counts as any other:
/// the size of /dev/shm does not limit it. `root` is where /proc and /sys lie. Cost: some files are
/// read.
std::optional<Bytes> free_memory(const std::filesystem::path& root = "/");

}  // namespace peal
