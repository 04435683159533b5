// The interface of all runners. A runner starts a job by an engine (Kubernetes, Slurm, ssh, this
// machine), and later asks the engine for the state and the logs. The commands `peal submit`,
// `status`, `logs` and `cancel` are the same code for all engines.
#pragma once

#include <chrono>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/interrupt.h"
#include "peal/base/secret.h"
#include "peal/base/units.h"
#include "peal/launch/end_cause.h"
#include "peal/launch/job/job.h"

namespace peal::launch {

enum class JobState : unsigned char {
  kQueued,      // the engine has the job, and has not placed it yet
  kPreparing,   // placed, but not all nodes run: images are pulled, hosts are reached
  kRunning,     // all nodes run
  kSucceeded,   // ended well
  kFailed,      // ended badly; JobStatus::cause and first_failure say why
  kCancelling,  // asked to end; some processes still run
  kCancelled,   // ended because a user or a time limit asked for it
  kUnknown,     // peal does not know the engine's word: see engine_state
};

/// "queued", "preparing", "running", "succeeded", "failed", "cancelling", "cancelled", "unknown".
std::string_view name_of(JobState state);
std::ostream& operator<<(std::ostream& out, JobState state);

/// Whether this state is final.
bool has_ended(JobState state);

/// One node of a job, as the engine sees it.
struct NodeStatus {
  std::string role{};
  int index = 0;  // in its role
  JobState state = JobState::kUnknown;
  std::string engine_state{};      // the engine's own word, verbatim: "CrashLoopBackOff"
  std::string reason{};            // a sentence: why the node waits, or how it failed
  std::optional<int> exit_code{};  // of its last attempt; 128+n for signal n
  int attempt = 0;                 // 0 for the first start
  std::string engine_name{};       // the engine's name for the node: of a pod, of a step
  std::string host{};              // where it runs; empty: not placed
  friend bool operator==(const NodeStatus&, const NodeStatus&) = default;
};

/// An attempt that has failed, and after which the job starts again.
struct FailedAttempt {
  int attempt = 0;        // 0 for the first start
  std::string failure{};  // a sentence, as JobStatus::first_failure
  friend bool operator==(const FailedAttempt&, const FailedAttempt&) = default;
};

struct JobStatus {
  std::string id{};
  JobState state = JobState::kUnknown;
  std::string engine_state{};       // the engine's own word, verbatim: "BackoffLimitExceeded"
  std::string reason{};             // a sentence, if the state needs one
  std::vector<NodeStatus> nodes{};  // by rank of the node
  /// When the job has ended: 0, or the exit code of the first failure if a program has caused it.
  std::optional<int> exit_code{};
  std::optional<EndCause> cause{};        // if the job has ended, but not well
  std::string first_failure{};            // a sentence: which node, how, why. Empty: no failure
  std::optional<Rank> failed_rank{};      // of the first failure
  std::vector<std::string> last_lines{};  // of its output, a bounded number
  std::string records{};                  // for `peal why`: a path; empty: not kept
  /// Why the job has started again, the last time. Kept after the end, also after success.
  std::optional<FailedAttempt> failed_attempt{};
  /// If the job has ended, and the engine knows when.
  std::optional<std::chrono::sys_time<std::chrono::milliseconds>> ended_at{};
  friend bool operator==(const JobStatus&, const JobStatus&) = default;
};

/// The values that a runner needs, besides the job, to start the job.
struct StartOptions {
  std::string id{};  // unique on the engine, chosen by the caller; names the job from now on
  Secret secret{};   // of the job's ranks; never in a command line, log or readable file
};

enum class Follow : unsigned char { kNo, kUntilTheEnd };

struct LogQuery {
  std::optional<Rank> rank{};    // nothing: all ranks
  std::optional<int> attempt{};  // 0 for the first start; nothing: the last one
  Follow follow = Follow::kNo;   // may begin before the job runs
  Interrupt interrupt{};         // called while the runner waits
  /// With `follow`: gets "attempt 0 failed: ...; attempt 1 follows", between the lines of the two
  /// attempts. From Slurm also "the job waits; Slurm's reason: Resources", once for each reason.
  std::function<void(const std::string& sentence)> tell{};
};

/// A line of a node, without its end.
struct LogLine {
  Rank node = 0;  // among all nodes
  std::string_view role;
  int index = 0;  // in its role
  /// If the node has several ranks, and the runner knows which one has written the line. If the
  /// runner does not know, `peal run` in the container has labelled the text: "[3] ".
  std::optional<Rank> rank{};
  std::string_view text{};
};
using LogSink = std::function<void(const LogLine& line)>;

enum class CancelResult : unsigned char {
  kCancelled,  // the engine ends the job now, or had begun to end it before
  kNoSuchJob,  // the engine has no such job: it was cancelled before, or never existed
};

/// All calls: Errors: usage (a job that this runner cannot run, an id that is unknown to status or
/// logs), resource (the engine's program is missing, the engine does not answer or refuses).
/// Threads: one call at a time.
class Runner {
 public:
  virtual ~Runner() = default;

  /// Starts the job. Returns when the engine has accepted the job, with the engine's own name for
  /// the job. If only a part was started, this part is removed before an error is thrown.
  virtual std::string start(const Job& job, const StartOptions& options) = 0;

  virtual JobStatus status(const std::string& id) = 0;

  /// Passes whole lines, in order for each node.
  /// Errors: also usage (the job has no such rank or attempt). Throws Interrupted, and passes on
  ///   exceptions of `sink`.
  virtual void logs(const std::string& id, const LogQuery& query, const LogSink& sink) = 0;

  /// Asks the job to end, in any state, and returns at once. May be repeated.
  virtual CancelResult cancel(const std::string& id) = 0;

  /// Removes what the engine keeps of a job that has ended, such as objects in a cluster. Returns
  /// whether there was something.
  virtual bool remove_remains(const std::string& id) = 0;
};

}  // namespace peal::launch
