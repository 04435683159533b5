// What the private folders of a run of a benchmark (base/private_folder.h) are called, and where
// they are.
#pragma once

namespace peal::bench {

inline constexpr const char* kFolderPrefix = "peal-bench.";

/// Where the system has memory that is shared by name.
inline constexpr const char* kSharedMemory = "/dev/shm";

}  // namespace peal::bench
