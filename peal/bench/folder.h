// The private folders of one run of a benchmark: for its socket and the workers that it writes out,
// and for the shared memory of peers that would leave it behind.
#pragma once

#include <filesystem>
#include <string>

#include "peal/base/fd.h"

namespace peal::bench {

/// Made for this user alone, removed at the end with all that is in it. Those that runs have left
/// which were killed are removed by the next one: their names carry the process, and nobody holds
/// the lock that a live run has on its folder. (A process that cannot be seen may live in another
/// container that shares the parent.) Programs that the run starts do not inherit the lock; the
/// guard of the ranks (launch/guard.h) does, and so keeps the folder until it has killed them.
class Folder final {
 public:
  /// Where the system has files for a while. Errors: resource.
  Folder();
  /// Inside `parent`. Errors: resource.
  explicit Folder(const std::filesystem::path& parent);
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file into it and returns where it is. Errors: resource.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
  Fd lock_;  // holds none where the file system has no locks: then nobody removes leftovers
};

/// Where the system has memory that is shared by name.
inline constexpr const char* kSharedMemory = "/dev/shm";

/// Removes the folders in `parent` of runs that are gone, where their locks can be had. (A new
/// Folder does that beside itself.)
void remove_folders_of_the_dead(const std::filesystem::path& parent);

/// The process whose number stands in `name` after `prefix`, as in "peal-bench.123.Xy", is gone, or
/// has ended without anybody having asked how.
bool is_left_by_the_dead(const std::string& name, const std::string& prefix);

}  // namespace peal::bench
