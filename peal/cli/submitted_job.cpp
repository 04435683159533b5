#include "peal/cli/submitted_job.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/cli/job_runner.h"
#include "peal/launch/jobs/job_status.h"

namespace peal::cli {

SubmittedJob::SubmittedJob(std::string_view text)
    : folder_(launch::jobs::find_job_folder(launch::jobs::jobs_directory(), text)),
      submission_(read_submission(folder_)),
      runner_(make_runner(submission_)) {}

launch::JobStatus SubmittedJob::status() const {
  // Slurm may know more about the end than the launcher.
  if (submission_.runner != "slurm" && read_end(folder_)) return status_of(folder_);
  launch::JobStatus status = status_of_the_runner();
  const bool is_over =
      has_ended(status.state) &&
      std::ranges::all_of(status.nodes, launch::has_ended, &launch::NodeStatus::state);
  if (!submission_.launcher && is_over && !read_end(folder_)) {
    write(folder_, launch::jobs::end_of(status, launch::jobs::wall_time_now()));
  }
  return status;
}

std::optional<launch::jobs::WallTime> SubmittedJob::ended_at() const {
  const auto end = read_end(folder_);
  return end ? std::optional(end->ended_at) : std::nullopt;
}

void SubmittedJob::cancel() const {
  ask_to_cancel(folder_);
  runner_->cancel(id());
}

/// An engine may have removed all traces of a job: Kubernetes does when the job is cancelled.
launch::JobStatus SubmittedJob::status_of_the_runner() const {
  try {
    return runner_->status(id());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUsage) throw;
    launch::JobStatus status{.id = id(), .reason = std::string(error.message())};
    if (const auto request = read_cancel_request(folder_)) {
      status.state = launch::JobState::kCancelled;
      status.reason = fmt::format("{} has cancelled it on {}", request->user, request->host);
    }
    return status;
  }
}

}  // namespace peal::cli
