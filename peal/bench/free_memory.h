// The amount of free memory. Checked before a large allocation: a process that takes too much
// memory gets no error, but the system kills it or another process.
#pragma once

#include <filesystem>
#include <optional>

#include "peal/base/units.h"

namespace peal::bench {

/// The minimum of the machine's available memory (MemAvailable: without swapping) and the memory
/// that the limits of this process's cgroup and its parents leave. File caches count as free.
/// nullopt if the system reports none of these values. Unnamed shared memory (memfd) counts as
/// other memory does; the size of /dev/shm does not limit it. `root` is the folder of /proc and
/// /sys. Cost: reads some files.
std::optional<Bytes> free_memory(const std::filesystem::path& root = "/");

}  // namespace peal::bench
