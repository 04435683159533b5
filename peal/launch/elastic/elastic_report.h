// The result of an elastic job: a value, its exit code and its text. Made by the driver, printed by
// the program.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/log_file.h"
#include "peal/launch/report.h"

namespace peal::launch {

/// A round that began.
struct ElasticRound {
  int number = 0;
  int size = 0;
  Duration after{};                                  // since the start of the job
  std::map<std::string, std::vector<Rank>> ranks{};  // by host
  friend bool operator==(const ElasticRound&, const ElasticRound&) = default;
};

/// How the process of a worker ended.
struct ElasticEnd {
  enum class How : unsigned char {
    kWell,
    kFailed,
    kRemoved,  // its slot was gone, or the job was about to end without it
    kEnded,    // by the launcher, at the end of the job
  };
  std::string host{};
  std::string worker{};  // "localhost[0]"
  pid_t pid = 0;
  int status = 0;  // as waitpid(2) gives it
  std::optional<OutOfMemory> out_of_memory{};
  std::string lost{};  // why its host was lost with it; empty: the worker has ended
  Duration after{};
  int round = 0;               // the round at that time; 0: before the first
  std::optional<Rank> rank{};  // in this round
  How how = How::kWell;
  bool is_shown = false;                  // reported while the job ran
  std::vector<std::string> last_lines{};  // of its output, if it failed
  friend bool operator==(const ElasticEnd&, const ElasticEnd&) = default;
};

struct ElasticReport {
  std::vector<ElasticRound> rounds;
  std::vector<ElasticEnd> ends;  // in the order in which the workers ended
  std::string why_badly;         // why the driver ended the job; empty: it did not
  int signal = 0;                // the signal that ended the job; 0: none
  int start_error = 0;           // errno of a program that could not be executed; 0: none
  int refusal = 0;  // the exit code if no host can be used, for one reason; 0: some can
  Duration after{};
  bool output_closed = false;  // the reader of the launcher's stdout is gone
  bool guard_lost = false;     // the guard was killed, and the workers with it
  int survivors = 0;           // processes that SIGKILL did not end
  std::vector<LostOutput> lost_output;
  std::optional<PostMortem> post_mortem;  // nothing: no records, or no failure
  friend bool operator==(const ElasticReport&, const ElasticReport&) = default;
};

/// "worker localhost[0] (rank 2 of round 1, pid 4711) was killed by SIGKILL after 3.2 s"
std::string describe(const ElasticEnd& end);

/// Converts the end of a member of a round to the end of a rank.
ProcessEnd as_process_end(const ElasticEnd& end);
/// The ends of the members of the last round, as the report of a launch.
LaunchReport ends_of_last_round(const ElasticReport& report);

/// 0 if the job ended well. Otherwise the code of the main failure, as a shell gives it: the first
/// failure of the last round, or the one that the records name as the cause. 128 + the signal that
/// ended the job, unless all workers ended with 0; 126 or 127 if the program could not be executed;
/// 1 if the driver ended the job and no worker of the last round has failed, or if only output is
/// missing.
int exit_code(const ElasticReport& report);

/// Why the job ended: the reason, the failures that were not reported while the job ran, the
/// last lines of the main failure, and the diagnosis from the records. If the job ended well, one
/// line about losses on the way, or that no round has begun; empty without both.
std::string describe(const ElasticReport& report);

}  // namespace peal::launch
