// The records in the folder of a job, as values and as JSON. Pure. Written by `peal submit` and by
// launchers, perhaps of another version of peal: fields that a reader does not know are ignored,
// and a state that it does not know is JobState::kUnknown. Text that is not UTF-8 is not kept
// exactly.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/jobs/launcher_process.h"
#include "peal/launch/runner.h"

namespace peal::launch::jobs {

using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;
WallTime wall_time_now();

/// A role, for `peal status`, and for the numbers of its ranks.
struct RoleRecord {
  std::string name{};
  int nodes = 1;  // at most
  int ranks_per_node = 1;
  std::string image{};  // empty: no container
  friend bool operator==(const RoleRecord&, const RoleRecord&) = default;
};
std::vector<RoleRecord> role_records(const Job& job);

/// submitted.json: what `peal submit` knows.
struct Submission {
  std::string id{};
  std::string name{};    // of the job
  std::string runner{};  // of kRunnerNames
  /// What the runner needs for later calls: for Kubernetes, the arguments of kubectl.
  std::vector<std::string> runner_options{};
  std::string engine_id{};  // the engine's name for the job: the number in Slurm
  std::vector<RoleRecord> roles{};
  WallTime submitted_at{};
  std::string host{};       // of the submission
  std::string user{};       // of the submission
  std::string directory{};  // of the submission
  /// For display: see without_secrets.
  std::vector<std::string> command_line{};
  /// The process that must write the first state: first `peal submit` itself, then the launcher
  /// that it has started. Nothing as soon as an engine is responsible (Slurm, Kubernetes).
  std::optional<LauncherProcess> launcher{};
  friend bool operator==(const Submission&, const Submission&) = default;
};

/// state.json: how the job goes. The launcher writes it at each change, and at least every
/// kStateEvery.
struct LauncherState {
  LauncherProcess launcher{};
  JobState state = JobState::kPreparing;
  std::string engine_state{};
  std::string reason{};
  int attempt = 0;
  std::vector<NodeStatus> nodes{};
  WallTime started_at{};  // of the launcher
  WallTime written_at{};  // this state
  friend bool operator==(const LauncherState&, const LauncherState&) = default;
};
inline constexpr auto kStateEvery = std::chrono::seconds(10);

/// end.json: how the job has ended.
struct JobEnd {
  JobState state = JobState::kFailed;
  std::string engine_state{};
  std::string reason{};
  std::optional<int> exit_code{};
  std::optional<EndCause> cause{};  // these five: as in JobStatus
  std::string first_failure{};
  std::optional<Rank> failed_rank{};
  std::vector<std::string> last_lines{};
  std::string records{};
  std::vector<NodeStatus> nodes{};
  int attempts = 1;  // how many times the job was started
  int requeues = 0;  // how often Slurm has put the job into its queue again
  WallTime ended_at{};
  friend bool operator==(const JobEnd&, const JobEnd&) = default;
};

/// cancel.json: a user has asked the job to end.
struct CancelRequest {
  WallTime asked_at{};
  std::string host{};
  std::string user{};
  friend bool operator==(const CancelRequest&, const CancelRequest&) = default;
};

/// Whether an engine (Slurm, Kubernetes) may have the job, also if `peal submit` was killed before
/// it has recorded the answer of the engine.
bool has_engine(const Submission& submission);

std::string encode(const Submission& submission);
std::string encode(const LauncherState& state);
std::string encode(const JobEnd& end);
std::string encode(const CancelRequest& request);

/// Read back what `encode` has written. `path` is the file, for the error.
/// Errors: resource (the file is damaged).
Submission decode_submission(std::string_view text, const std::string& path);
LauncherState decode_state(std::string_view text, const std::string& path);
JobEnd decode_end(std::string_view text, const std::string& path);
CancelRequest decode_cancel_request(std::string_view text, const std::string& path);

/// The end that a status describes: for engines that forget, written when the end is first seen.
JobEnd end_of(const JobStatus& status, WallTime ended_at);

/// The arguments with "***" for the values of options whose name contains "secret", "token",
/// "password", "passwd", "credential" or "api-key" ("--wandb-api-key=X", "--token X",
/// "DB_PASSWORD=X").
std::vector<std::string> without_secrets(std::vector<std::string> arguments);

}  // namespace peal::launch::jobs
