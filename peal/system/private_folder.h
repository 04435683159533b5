// A folder of one process for temporary files: a benchmark's workers and sockets, the records of a
// launch's ranks. The folder is removed later even if the process is killed.
#pragma once

#include <filesystem>
#include <string>

#include "peal/system/fd.h"

namespace peal {

/// The system's folder for temporary files: TMPDIR, or /tmp.
std::filesystem::path folder_of_the_system();

/// A folder for this user only. The destructor removes it with its content.
///
/// The next PrivateFolder with the same prefix removes the folders of processes that were killed. A
/// folder is a leftover if the process in its name has ended and its lock is free. (The lock is
/// needed because a process in another container that shares the parent may not be visible.)
///
/// Programs that this process starts do not inherit the lock. A forked process, such as the guard
/// of the ranks (launch/guard.h), inherits the lock. The folder then stays until that process has
/// ended.
class PrivateFolder final {
 public:
  /// Creates it inside `parent`, with a name that begins with `prefix`. Errors: resource.
  explicit PrivateFolder(const std::string& prefix,
                         const std::filesystem::path& parent = folder_of_the_system());
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file for this user only into the folder, and returns its path. Errors: resource.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
  Fd lock_;  // holds no lock if the file system has no locks: then leftovers are not removed
};

/// Removes this user's folders in `parent` with this prefix whose processes have ended and whose
/// locks are free. (A new PrivateFolder calls this for its parent.)
void remove_folders_of_ended_processes(const std::string& prefix,
                                       const std::filesystem::path& parent);

/// Whether the process whose number follows `prefix` in `name`, as in "peal-bench.123.Xy", has
/// ended or is a zombie.
bool is_of_an_ended_process(const std::string& name, const std::string& prefix);

}  // namespace peal
