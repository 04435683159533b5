// The folder of a submitted job: its records and its logs. There is no daemon: `peal submit` makes
// the folder, the launcher writes its state and its end there, and other commands read it, also on
// another host that shares the folder. The README names the writer of each file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/secret.h"
#include "peal/launch/job/job.h"
#include "peal/launch/jobs/job_records.h"
#include "peal/launch/screen.h"

namespace peal::launch::jobs {

/// The folder with the folders of all jobs of this user: PEAL_JOBS_DIR, else
/// $XDG_STATE_HOME/peal/jobs, else ~/.local/state/peal/jobs. It may not exist yet.
/// Errors: usage (PEAL_JOBS_DIR is not absolute, or no home is known).
std::filesystem::path jobs_directory();

/// The paths in the folder of a job. A value: the folder may not exist.
class JobFolder final {
 public:
  /// `path` ends with the id.
  explicit JobFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::string id() const { return path_.filename(); }

  std::string job_file() const { return path_ / "job.yaml"; }
  std::string submission_file() const { return path_ / "submitted.json"; }
  std::string secret_file() const { return path_ / "secret"; }
  std::string state_file() const { return path_ / "state.json"; }
  std::string end_file() const { return path_ / "end.json"; }
  /// What the launcher reports.
  std::string launcher_log() const { return path_ / "launcher.log"; }
  std::string cancel_file() const { return path_ / "cancel.json"; }
  /// The folder for the logs of an attempt, for LaunchOptions::log_directory.
  std::string attempt_directory(int attempt) const;
  /// As the launcher names it in that folder: "attempt-0/rank-3.out".
  std::string rank_log(int attempt, Rank rank, Channel channel) const;
  /// Says how the attempt failed, if the job starts again after it.
  std::string failure_file(int attempt) const;
  /// The same, if Slurm has put the job into its queue again. This is not a restart of the job.
  std::string requeue_file(int attempt) const;

  friend bool operator==(const JobFolder&, const JobFolder&) = default;

 private:
  std::filesystem::path path_;
};

/// What a new folder contains.
struct NewJob {
  Job job;
  /// The id, the name, the roles, the time, the host, the user and the launcher (this process) are
  /// filled in.
  Submission submission{};
  Secret secret{};  // written only if it is not empty
};

/// Makes a folder with a new id. The folder appears with all its files at once, mode 0700. Two
/// calls never get the same id, on any host that shares `directory`: the file system decides.
/// Errors: resource.
JobFolder make_job_folder(const std::filesystem::path& directory, const NewJob& job);

/// The folder for a text that a user has typed: an id, or its unambiguous beginning. Errors: usage.
JobFolder find_job_folder(const std::filesystem::path& directory, std::string_view text);

/// The ids of all folders in `directory`, in any order; none if it does not exist.
/// Errors: resource.
std::vector<std::string> job_ids(const std::filesystem::path& directory);

/// Each replaces the whole file, so that a reader never sees a part. Errors: resource.
void write(const JobFolder& folder, const Submission& submission);
void write(const JobFolder& folder, const LauncherState& state);
/// Also removes the secret, which is not needed any more.
void write(const JobFolder& folder, const JobEnd& end);
/// The same, but replaces only an end from before a requeue (JobEnd::requeues). Called by processes
/// that are not the launcher, because its end has priority: on a shared folder, they may not see
/// that end yet. Errors: also if the recorded end is damaged.
void write_if_first(const JobFolder& folder, const JobEnd& end);
/// The folder of the attempt must exist.
void write(const JobFolder& folder, const FailedAttempt& failed);
/// For read_failure, but not for restarts_of: Slurm has put the job into its queue again.
void write_requeued(const JobFolder& folder, const FailedAttempt& ended);
/// Asks the launcher to cancel the job. A launcher reads this regularly. May be repeated: the first
/// request stays.
void ask_to_cancel(const JobFolder& folder);

/// Errors: resource (a file is missing, unreadable or damaged: the text names it).
Submission read_submission(const JobFolder& folder);
Job read_job(const JobFolder& folder);
/// An empty secret if the job has no secret.
Secret read_secret(const JobFolder& folder);

/// Nothing if the file was not written yet. Errors: as above.
std::optional<LauncherState> read_state(const JobFolder& folder);
std::optional<JobEnd> read_end(const JobFolder& folder);
std::optional<CancelRequest> read_cancel_request(const JobFolder& folder);
/// Nothing if the job has not started again after this attempt.
std::optional<FailedAttempt> read_failure(const JobFolder& folder, int attempt);

/// The numbers of the attempts that have logs, in order.
std::vector<int> attempts_of(const JobFolder& folder);
/// How often the job has started again after a failure. Counts the restarts by all its launchers.
int restarts_of(const JobFolder& folder);

}  // namespace peal::launch::jobs
