// The file beside the screen that gets what a rank writes: rank-N.out or rank-N.err of --log-dir.
// Called by RankStream.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "peal/base/fd.h"

namespace peal::launch {

/// Output of ranks that could not be written.
struct LostOutput {
  std::string where;        // a path, or "standard output"
  int error = 0;            // errno of the first failure
  std::uint64_t bytes = 0;  // how many are missing there
  friend bool operator==(const LostOutput&, const LostOutput&) = default;
};

/// A log on a full disk is not worth a training run: it goes on with a gap. Each gap begins with a
/// line that says so, written over the end of the log where there is no room for more, and the log
/// continues as soon as there is room again. A caller that writes beyond RLIMIT_FSIZE must have
/// SIGXFSZ blocked or ignored.
class LogFile final {
 public:
  /// Stands for no file.
  LogFile() = default;
  /// Makes the file (base/own_file.h). Errors: resource, which names the path.
  explicit LogFile(std::string path);
  LogFile(LogFile&&) = default;
  LogFile& operator=(LogFile&&) = default;

  void append(std::string_view bytes);
  /// No more will come. Some file systems only say now that something could not be written.
  void close();
  /// The bytes are 0 where only `close` has failed; the error is 0 where all went well.
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
