// Passes on what a process writes to its stderr, and remembers the last line. Used by
// container_rank.cpp: the init of a container says there why it cannot execute the command.
#pragma once

#include <string>
#include <string_view>
#include <thread>

#include "peal/system/fd.h"
#include "peal/system/pipe.h"

namespace peal::launch::containers {

class StderrRelay final {
 public:
  /// Errors: resource.
  StderrRelay();
  ~StderrRelay() { finish(); }
  StderrRelay(const StderrRelay&) = delete;
  StderrRelay& operator=(const StderrRelay&) = delete;

  /// The stderr for the process.
  int writer() const { return pipe_.writer.get(); }
  /// Starts the thread that passes on the bytes, unchanged and at once, to the stderr of this
  /// process. Its signal mask is that of the caller. Errors: resource.
  void start();
  /// Passes on what has been written so far, and ends the thread. Call this after the end of the
  /// process; other processes may still have the writer. May block as long as stderr does.
  void finish();
  /// After `finish`: the last line with text, without its newline; only the first 1000 bytes.
  const std::string& last_line() const { return last_line_; }

 private:
  void work();
  bool pass_on();
  void remember(std::string_view bytes);

  Pipe pipe_;
  Pipe stop_;  // closing its writer asks the thread to end
  std::thread thread_;
  std::string line_;  // the bytes of a line that has not ended
  std::string last_line_;
};

}  // namespace peal::launch::containers
