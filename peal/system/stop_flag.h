// A flag by which the guard of a rank asks the rank to stop: a small file that both map. Unlike a
// signal, the flag reaches only processes that look at it. The process may be any descendant of the
// guard, also behind a shell or in a container.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "peal/system/fd.h"
#include "peal/system/mapping.h"

namespace peal {

/// Threads: any.
class StopFlag final {
 public:
  /// Makes the file, for this user only. Errors: resource.
  static StopFlag create(const std::string& path);
  /// Returns nothing if the file is missing, or is not such a file.
  static std::optional<StopFlag> open(const std::string& path);

  /// Tells the guard that this process looks at the flag, until `unwatch` or the end of the process
  /// and of its forked children. Meanwhile the guard sets the flag instead of sending SIGTERM.
  void watch() const;
  void unwatch() const;
  /// Whether another object looks, in any process.
  bool is_watched() const;

  /// `signal`: the signal that the flag replaces; 0: the flag is only a warning.
  void set(int signal) const;
  /// Cost: a read of memory.
  bool is_set() const;
  int signal() const;

 private:
  explicit StopFlag(Fd file);

  Fd file_;  // locked by each object that looks
  Mapping mapping_;
};

}  // namespace peal
