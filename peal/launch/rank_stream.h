// One of the two outputs of a rank on its way to the screen, to its log file and to its last lines.
#pragma once

#include <string>
#include <string_view>

#include "peal/base/fd.h"
#include "peal/base/units.h"
#include "peal/launch/line_splitter.h"
#include "peal/launch/log_file.h"
#include "peal/launch/screen.h"
#include "peal/launch/tail.h"

namespace peal::launch {

/// What is done with a line that ends in a return, of which the next takes the place.
enum class Progress : unsigned char {
  kShow,  // in place on a terminal, as lines of their own elsewhere
  kHide,  // only what stands when the newline comes is shown
};

class RankStream final {
 public:
  struct Way {
    Fd pipe{};      // does not block
    LogFile log{};  // takes the bytes as they are
    Channel channel = Channel::kOut;
    std::string prefix{};
    Progress progress = Progress::kHide;
  };
  /// `screen` and `tail` must outlive it.
  RankStream(Way way, Screen& screen, Tail& tail);
  RankStream(RankStream&&) = delete;

  /// -1 at the end of the output.
  int fd() const { return way_.pipe.get(); }
  /// Takes on what has been written; at its end, closes. Bounded: one read.
  void read_some();
  /// Waits for no more: what was begun is a line, and the pipe is closed.
  void finish();
  /// What the log lacks.
  const LostOutput& lost_in_log() const { return way_.log.lost(); }

 private:
  void take(LineEnd end, std::string_view line);

  Way way_;
  Screen& screen_;
  Tail& tail_;
  LineSplitter splitter_;
};

}  // namespace peal::launch
