// How a launch went: a value, its exit code and its text. Made by the launcher, printed by the
// program.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"

namespace peal::launch {

/// How the process of a rank ended.
struct RankEnd {
  Rank rank = 0;
  pid_t pid = 0;
  int status = 0;    // as waitpid(2) gives it
  Duration after{};  // since the start
  friend bool operator==(const RankEnd&, const RankEnd&) = default;
};

/// The program could not be executed, though it is there.
struct StartFailure {
  Rank rank = 0;
  std::string program;
  int error = 0;  // errno
  friend bool operator==(const StartFailure&, const StartFailure&) = default;
};

struct LaunchReport {
  std::vector<RankEnd> ends;  // in the order in which they ended
  std::optional<StartFailure> start_failure;
  std::optional<RankEnd> first_failure;  // of a rank that was not told to end
  std::vector<std::string> last_lines;   // that the first rank to fail wrote
  int signal = 0;                        // that told the launcher to end; 0: none did
  Duration after{};                      // when it all had ended
  bool output_closed = false;            // whoever read the launcher's stdout is gone
  bool guard_lost = false;               // the guard was killed, and the ranks with it
  int survivors = 0;                     // processes that SIGKILL did not end
  std::vector<Rank> killed;              // told to end, and killed after the grace
  Timeout grace{};
  friend bool operator==(const LaunchReport&, const LaunchReport&) = default;
};

/// Whether the wait status is anything but exit(0).
bool failed(int status);

/// 0 when every rank ended with 0. Else what a shell gives for the first rank that failed: its
/// code, or 128 + signal; 126 or 127 when the program could not be executed.
int exit_code(const LaunchReport& report);

/// One or two sentences with the first failure and what became of the others, then the last lines
/// that the rank wrote. Empty when there is nothing to say; ends in a newline otherwise.
std::string describe(const LaunchReport& report);

}  // namespace peal::launch
