// The names and places of a benchmark's private folders (system/private_folder.h).
#pragma once

namespace peal::bench {

inline constexpr const char* kFolderPrefix = "peal-bench.";

/// The folder of named shared memory.
inline constexpr const char* kSharedMemory = "/dev/shm";

}  // namespace peal::bench
