// A folder of one process for as long as it needs it: a benchmark's workers and sockets, the
// records of a launch's ranks. Nothing of it is left behind, also where the process is killed.
#pragma once

#include <filesystem>
#include <string>

#include "peal/base/fd.h"

namespace peal {

/// Where the system has files for a while: TMPDIR, or /tmp.
std::filesystem::path folder_of_the_system();

/// Made for this user alone, removed at the end with all that is in it. Those that processes have
/// left which were killed are removed by the next one with this prefix: their names carry the
/// process, and nobody holds the lock that a live one has on its folder. (A process that cannot be
/// seen may live in another container that shares the parent.) Programs that are started meanwhile
/// do not inherit the lock; a process that is only forked does, as the guard of the ranks
/// (launch/guard.h), and so keeps the folder until it has ended.
class PrivateFolder final {
 public:
  /// Inside `parent`, with a name that begins with `prefix`. Errors: resource.
  explicit PrivateFolder(const std::string& prefix,
                         const std::filesystem::path& parent = folder_of_the_system());
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file into it, for this user alone, and returns its path. Errors: resource.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
  Fd lock_;  // holds none where the file system has no locks: then nobody removes leftovers
};

/// Removes this user's folders in `parent` with this prefix whose processes are gone and whose
/// locks are free. (A new PrivateFolder does so in its parent.)
void remove_folders_of_the_dead(const std::string& prefix, const std::filesystem::path& parent);

/// The process whose number stands in `name` after `prefix`, as in "peal-bench.123.Xy", is gone, or
/// has ended without anybody having asked how.
bool is_left_by_the_dead(const std::string& name, const std::string& prefix);

}  // namespace peal
