// Reads the lines of a log that may still be written, may not exist yet, and may be truncated or
// replaced. Called by job_logs.cpp.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "peal/launch/line_splitter.h"

namespace peal::launch::jobs {

/// Holds no descriptor between reads, so that the logs of a thousand ranks can be followed, and so
/// that NFS looks at the file anew.
class GrowingFile final {
 public:
  /// `take` gets each line without its end.
  using Take = std::function<void(std::string_view line)>;
  GrowingFile(std::string path, Take take);

  /// Whether read_new could pass lines on now, by the size of the file.
  bool has_grown() const;

  /// Passes on the lines that were completed since the last call. A line waits until its end is
  /// written. Returns whether the file exists.
  /// - A file that became shorter by a few lines continues with its last line: the launcher writes
  ///   a note over the end of a log if the disk is full.
  /// - A file that became shorter otherwise, or was replaced, is read from its beginning.
  /// Errors: resource (the file cannot be read).
  bool read_new();

  /// No more will be written: an unfinished line is passed on.
  void finish();

 private:
  void notice_truncation(const struct stat& status, int fd);
  void restart_at(off_t offset);

  std::string path_;
  LineSplitter lines_;
  off_t offset_ = 0;        // of the next byte to read
  std::uint64_t file_ = 0;  // the number of its inode; 0: not seen yet
};

}  // namespace peal::launch::jobs
