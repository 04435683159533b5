// How a launch went: a value, its exit code and its text. Made by the launcher, printed by the
// program.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/launch/log_file.h"
#include "peal/observe/rank_end.h"

namespace peal::launch {

/// The launcher's part in the end of a rank.
enum class Ending : unsigned char {
  kItself,  // none: it had been told nothing
  kTold,    // it had been told to end
  kKilled,  // it had been told to end, and was killed after the grace, or when that was cut short
};

/// How the process of a rank ended.
struct ProcessEnd {
  Rank rank = 0;
  pid_t pid = 0;
  int status = 0;    // as waitpid(2) gives it
  Duration after{};  // since the start
  Ending ending = Ending::kItself;
  bool stood_still = false;               // stopped by a signal, when it was told to end
  std::vector<std::string> last_lines{};  // that it wrote, where it failed by itself
  friend bool operator==(const ProcessEnd&, const ProcessEnd&) = default;
};

/// The program could not be executed, though it is there.
struct StartFailure {
  Rank rank = 0;
  std::string program;
  int error = 0;  // errno
  friend bool operator==(const StartFailure&, const StartFailure&) = default;
};

/// What is known of why a launch failed, by the records that its ranks have left.
struct PostMortem {
  std::string sentence{};  // who caused it; empty where no rank had failed by itself
  std::string records{};   // where they are, for `peal why`; empty: nowhere
  std::string problem{};   // why they are nowhere, or the sentence is missing; empty: all went well
  friend bool operator==(const PostMortem&, const PostMortem&) = default;
};

struct LaunchReport {
  std::vector<ProcessEnd> ends;  // in the order in which they ended
  std::optional<StartFailure> start_failure;
  int signal = 0;              // that told the launcher to end; 0: none did
  Duration after{};            // when it all had ended
  bool output_closed = false;  // whoever read the launcher's stdout is gone
  bool guard_lost = false;     // the guard was killed, and the ranks with it
  int survivors = 0;           // processes that SIGKILL did not end
  int cut_short = 0;           // the signal that ended the grace before its time; 0: none did
  Timeout grace{};
  std::vector<LostOutput> lost_output;
  std::optional<PostMortem> post_mortem;  // nothing: there were no records, or no failure
  friend bool operator==(const LaunchReport&, const LaunchReport&) = default;
};

/// Whether the wait status is anything but exit(0).
bool failed(int status);

/// "ended with exit code 3", "was killed by SIGKILL": of a wait status.
std::string describe_status(int status);

/// What is left of it for `peal why` and for its peers, beside its flight.
observe::RankEnd record_of(const ProcessEnd& end, observe::WallTime at);

/// Whether it failed, and not because it was told to end.
bool failed_by_itself(const ProcessEnd& end);

/// Of the ranks that failed by themselves the one to look at, null if there is none: the first that
/// did not write that it had lost a peer (of those, one that crashed is before one that ended with
/// a code), else the first.
const ProcessEnd* main_failure(const LaunchReport& report);

/// Whether every rank ended with 0.
bool all_went_well(const LaunchReport& report);

/// 0 when every rank ended with 0 and its output could be written; 1 if only the output is missing.
/// Else what a shell gives for the main failure: its code, or
/// 128 + signal; 126 or 127 when the program could not be executed.
int exit_code(const LaunchReport& report);

/// Who failed, the main failure first, what became of the others, the main failure's last lines,
/// what the ranks' records say, and which output is missing. Some lines, however many ranks there
/// are; empty when there is nothing to say.
std::string describe(const LaunchReport& report);

}  // namespace peal::launch
