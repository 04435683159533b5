// Carries one of the two outputs of a rank to the screen, to its log file and to its last lines.
#pragma once

#include <string>
#include <string_view>

#include "peal/base/units.h"
#include "peal/launch/line_splitter.h"
#include "peal/launch/log_file.h"
#include "peal/launch/options.h"
#include "peal/launch/screen.h"
#include "peal/launch/tail.h"
#include "peal/system/fd.h"

namespace peal::launch {

/// How to show a line that ends in a return, and so is replaced by the next line.
enum class Progress : unsigned char {
  kShow,  // in place on a terminal, as separate lines elsewhere
  kHide,  // only the final line, when the newline comes
};

/// Whether the lines come to the screen. Logs and last lines get them in any case.
enum class Display : unsigned char { kShow, kHide };

class RankStream final {
 public:
  struct Way {
    Fd pipe{};      // does not block
    LogFile log{};  // gets the bytes unchanged
    Channel channel = Channel::kOut;
    std::string label{};  // before each line on the screen
    Timestamps timestamps = Timestamps::kOff;
    Progress progress = Progress::kHide;
    Display display = Display::kShow;
  };
  /// `screen` and `tail` must outlive it.
  RankStream(Way way, Screen& screen, Tail& tail);
  RankStream(RankStream&&) = delete;

  /// The pipe; -1 at the end of the output.
  int fd() const { return way_.pipe.get(); }
  /// Reads available output; closes the pipe at its end. Bounded: one read.
  void read_some();
  /// Stops reading: an unfinished line counts as a line, and the pipe is closed.
  void finish();
  /// The bytes that the log lacks.
  const LostOutput& lost_in_log() const { return way_.log.lost(); }

 private:
  void take(LineEnd end, std::string_view line);
  /// The text before a line that is shown now.
  std::string prefix() const;

  Way way_;
  Screen& screen_;
  Tail& tail_;
  LineSplitter splitter_;
};

}  // namespace peal::launch
