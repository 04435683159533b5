// Runs the attempts of a job one after the other, by the rules of attempts.h, and waits between
// them. Called by `peal run`, and by the launcher of a submitted job.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "peal/launch/attempts.h"
#include "peal/launch/report.h"

namespace peal::launch {

/// Of the ranks of a job that may start again: which attempt this is, from 0.
inline constexpr const char* kAttemptVariable = "PEAL_ATTEMPT";

/// What follows from the end of an attempt.
enum class AfterAttempt : unsigned char {
  kEnd,       // it ended well, by a signal, by a request, or by a mistake in the command
  kRestart,   // it failed
  kRetry,     // no rank was started, because hosts cannot be used
  kAwaitEnd,  // the engine takes the hosts away, and ends the launcher soon
};

struct AttemptEnd {
  int exit_code = 0;
  AfterAttempt next = AfterAttempt::kEnd;
  std::vector<std::pair<std::string, std::string>> lost{};  // hosts, and why
};

/// The end of an attempt that has started ranks. Pure.
AttemptEnd end_of(const LaunchReport& report);

class AttemptedJob {
 public:
  virtual ~AttemptedJob() = default;
  AttemptedJob() = default;
  AttemptedJob(const AttemptedJob&) = delete;
  AttemptedJob& operator=(const AttemptedJob&) = delete;

  /// `number`: 0 for the first attempt, one more after each restart.
  virtual AttemptEnd run(const BeginAttempt& attempt, int number) = 0;
  /// A sentence for the user: why the job waits or ends.
  virtual void tell(const std::string& sentence) = 0;
  /// The attempt has failed, and another one follows: "restart 1 of 3".
  virtual void restart(const std::string& sentence) { tell(sentence); }
  /// Called every kLookEvery while the job waits for its next attempt. Returns the exit code if the
  /// job must end; 0: it goes on.
  virtual int look() { return 0; }
};

/// What the launcher of a preempted job says when all ranks have ended (allocation_end.h).
inline constexpr const char* kPreempted =
    "Slurm preempts the job; all ranks have ended, and the launcher waits until Slurm ends the job";

/// Waits until Slurm ends this preempted job. Slurm counts a job that ends by itself as complete,
/// and does not start it again. Calls `look` every kLookEvery, and asks Slurm every minute. Returns
/// - 128 + n when signal n arrives
/// - the exit code of `look`, if it is not 0
/// - 128 + SIGTERM if Slurm no longer preempts the job, as after the end of a job of salloc
int await_preemption(const std::function<int()>& look);

/// Returns the exit code of the last attempt; 128 + n if signal n arrived during a wait. Uses the
/// signals of this process between attempts (signals.h).
int run_attempts(AttemptState state,
                 const AttemptRules& rules,
                 const RoomFor& room,
                 AttemptedJob& job);

}  // namespace peal::launch
