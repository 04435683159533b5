// All jobs of a user, for `peal jobs`; and the removal of old ones.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "peal/launch/jobs/job_folder.h"
#include "peal/launch/jobs/job_status.h"

namespace peal::launch::jobs {

/// A job in the list.
struct JobEntry {
  std::string id{};
  std::string name{};
  std::string runner{};
  /// From the folder. If it is unknown or not ended, a runner may know more: `has_launcher`.
  JobStatus status{};
  /// Whether the folder alone tells the state. If not, ask the runner.
  bool has_launcher = false;
  int nodes = 0;  // at most
  WallTime submitted_at{};
  std::optional<WallTime> ended_at{};  // of a launcher that is gone: its last state
  /// Why the folder cannot be read. Then only `id` and `submitted_at` are known, the latter by the
  /// time of the folder. Empty: not damaged.
  std::string damage{};
  friend bool operator==(const JobEntry&, const JobEntry&) = default;
};

/// The newest first. A damaged folder is an entry, too. Errors: resource (no access to
/// `directory`). Cost: a few small files for each job.
std::vector<JobEntry> list_jobs(const std::filesystem::path& directory);

/// Removes the folder of a job. Errors: resource.
void remove_job(const JobFolder& folder);

/// Removes the folders of jobs that have ended before `now - age`, and what killed submissions have
/// left. Keeps damaged folders, and jobs whose state is not known. Returns the ids.
/// Errors: resource (a folder cannot be removed).
std::vector<std::string> remove_ended_jobs(const std::filesystem::path& directory,
                                           std::chrono::seconds age,
                                           WallTime now);

}  // namespace peal::launch::jobs
