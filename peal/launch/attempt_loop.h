// Runs the attempts of a job one after the other, by the rules of attempts.h, and waits between
// them. Called by `peal run`, and by the launcher of a submitted job.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "peal/launch/attempts.h"
#include "peal/launch/report.h"
#include "peal/launch/signals.h"

namespace peal::launch {

/// Of the ranks of a job that may start again: which attempt this is, from 0.
inline constexpr const char* kAttemptVariable = "PEAL_ATTEMPT";

/// What follows from the end of an attempt.
enum class AfterAttempt : unsigned char {
  kEnd,      // it ended well, by a signal, by a request, or because a process cannot start
  kRestart,  // it failed
  kRetry,    // no rank was started, because hosts cannot be used
};

struct AttemptEnd {
  int exit_code = 0;
  AfterAttempt next = AfterAttempt::kEnd;
  std::vector<std::pair<std::string, std::string>> lost{};  // hosts, and why
  /// The launcher got SIGTERM, a signal has ended an agent, or hosts cannot be used: Slurm may have
  /// caused each of these.
  bool may_be_preempted = false;
  /// The signal that ended the attempt before any rank started; 0: none. The other members have no
  /// meaning then.
  int signal = 0;
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
  /// A sentence for the user.
  virtual void tell(const std::string& sentence) = 0;
  /// The job ends, because there are too few hosts.
  virtual void give_up(const std::string& sentence) { tell(sentence); }
  /// The job ends, because the launcher got this signal while no rank ran.
  virtual void interrupted(int /*signal*/, const std::string& sentence) { tell(sentence); }
  /// The job waits for hosts.
  virtual void wait(const std::string& sentence) { tell(sentence); }
  /// The attempt has failed, and another one follows: "restart 1 of 3".
  virtual void restart(const std::string& sentence) { tell(sentence); }
  /// Slurm preempts the job, and no rank runs. `sentence`: what the job waits for.
  virtual void preempted(const std::string& sentence) { tell(sentence); }
  /// Called every kLookEvery while the job waits. Returns the exit code if the job must end; 0: it
  /// goes on.
  virtual int look() { return 0; }
  /// Whether Slurm preempts the job now. Errors: resource (Slurm does not answer).
  virtual bool is_preempted() { return false; }
};

/// Returns the exit code of the last attempt that has started ranks, or of the first attempt if
/// none has. Returns 128 + n if signal n arrived while no rank ran, and another attempt would have
/// followed.
/// `signals`: those that `job` reads during its attempts.
///
/// After the last attempt of a preempted job, waits until Slurm ends the job: Slurm counts a job
/// that ends by itself as complete, and does not start it again. Returns 128 + SIGTERM if Slurm
/// no longer preempts the job, as after the end of a job of salloc.
int run_attempts(AttemptState state,
                 const AttemptRules& rules,
                 const RoomFor& room,
                 AttemptedJob& job,
                 SignalReader& signals);

}  // namespace peal::launch
