// The status of a job from the records in its folder. Called by the runners whose jobs have a
// launcher, by `peal jobs`, and for jobs that their engine has forgotten.
#pragma once

#include <optional>

#include "peal/launch/jobs/job_folder.h"
#include "peal/launch/jobs/job_records.h"
#include "peal/launch/jobs/launcher_process.h"
#include "peal/launch/runner.h"

namespace peal::launch::jobs {

/// What is known about a job at one moment.
struct JobRecords {
  Submission submission{};
  std::optional<LauncherState> state{};
  std::optional<CancelRequest> cancel{};
  std::optional<JobEnd> end{};
  std::optional<FailedAttempt> failed_attempt{};  // the last one
  /// Of the launcher that has written the state, else of the process that must write the first
  /// state. Not used if neither exists.
  Liveness launcher = Liveness::kNotVisible;
};

/// The last attempt before Slurm has put the job into its queue again, and why it failed. Nothing
/// if it succeeded. `end`: as the launcher of that attempt has recorded it. Pure.
std::optional<FailedAttempt> attempt_before_requeue(const JobEnd& end);

/// After this time without a new state, a launcher that is not visible counts as unknown.
inline constexpr auto kStateIsOld = std::chrono::seconds(60);

/// Pure. The first row that applies:
/// | records | state |
/// |---|---|
/// | an end | as recorded |
/// | the launcher is gone (*) | failed, with its process; cancelled, if asked |
/// | a state older than kStateIsOld, of a launcher that is not visible | unknown |
/// | a state | as recorded; cancelling, if asked |
/// | no state, but a process that must write the state | queued; cancelling, if asked |
/// | neither, or this process is gone and the job has an engine | unknown |
/// (*) Without a state: only of a job without an engine.
JobStatus status_of(const JobRecords& records, WallTime now);

/// Reads the records in an order that allows no wrong conclusion: a launcher that has just written
/// its end is not taken for a killed one. Errors: resource.
JobRecords read_records(const JobFolder& folder);

/// Both. Errors: resource.
JobStatus status_of(const JobFolder& folder);

}  // namespace peal::launch::jobs
