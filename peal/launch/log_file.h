// The log file of an output of a rank, in the folder of --log-dir or --output-filename. Called by
// RankStream.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "peal/system/fd.h"

namespace peal::launch {

/// Output of ranks that could not be written.
struct LostOutput {
  std::string where;        // a path, or "standard output"
  int error = 0;            // errno of the first failure
  std::uint64_t bytes = 0;  // how many are missing
  friend bool operator==(const LostOutput&, const LostOutput&) = default;
};

/// A full disk must not end a training run, so the log continues with a gap. Each gap begins with a
/// line that says so, written over the end of the log if no room is left. The log continues as soon
/// as there is room. A caller that may write beyond RLIMIT_FSIZE must block or ignore SIGXFSZ.
class LogFile final {
 public:
  /// Refers to no file, and drops all bytes.
  LogFile() = default;
  /// Creates the file (system/own_file.h). Errors: resource, which names the path.
  explicit LogFile(std::string path);
  LogFile(LogFile&&) = default;
  LogFile& operator=(LogFile&&) = default;

  void append(std::string_view bytes);
  /// Ends the log. Some file systems report only now that a write has failed.
  void close();
  /// `bytes` is 0 if only `close` has failed; `error` is 0 if nothing is lost.
  const LostOutput& lost() const { return lost_; }

 private:
  void fail(int error, std::uint64_t bytes);
  void begin_gap(int error);

  Fd file_;
  off_t size_ = 0;
  bool is_in_gap_ = false;
  LostOutput lost_;
};

}  // namespace peal::launch
