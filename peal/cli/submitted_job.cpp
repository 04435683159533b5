#include "peal/cli/submitted_job.h"

#include <signal.h>

#include <algorithm>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/cli/job_runner.h"
#include "peal/launch/jobs/job_status.h"
#include "peal/launch/process_end.h"

namespace peal::cli {
namespace {

/// What the engine of `runner` knows about a job that was submitted elsewhere.
launch::jobs::Submission submission_of(std::string_view id, std::string_view runner) {
  if (runner != "kubernetes") {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("--to {}: only kubernetes finds a job that was submitted elsewhere; for "
                    "other runners, set PEAL_JOBS_DIR to the folder of its records",
                    quoted_beginning(runner)));
  }
  launch::jobs::Submission submission{.id = std::string(id),
                                      .name = std::string(id),
                                      .runner = std::string(runner),
                                      .engine_id = std::string(id)};
  for (const launch::NodeStatus& node : make_runner(submission)->status(submission.id).nodes) {
    const bool is_next = submission.roles.empty() || submission.roles.back().name != node.role;
    if (is_next) submission.roles.push_back({.name = node.role, .nodes = 0});
    ++submission.roles.back().nodes;
  }
  return submission;
}

}  // namespace

SubmittedJob::SubmittedJob(std::string_view text)
    : folder_(launch::jobs::find_job_folder(launch::jobs::jobs_directory(), text)),
      submission_(read_submission(*folder_)),
      runner_(make_runner(submission_)) {}

SubmittedJob::SubmittedJob(std::string_view id, std::string_view runner)
    : submission_(submission_of(id, runner)), runner_(make_runner(submission_)) {}

launch::JobStatus SubmittedJob::status() const {
  if (!folder_) return runner_->status(id());
  // Slurm may know more about the end than the launcher.
  if (submission_.runner != "slurm" && read_end(*folder_)) return status_of(*folder_);
  launch::JobStatus status = status_of_the_runner();
  const bool is_over =
      has_ended(status.state) &&
      std::ranges::all_of(status.nodes, launch::has_ended, &launch::NodeStatus::state);
  if (submission_.runner == "kubernetes" && is_over) {
    const auto ended_at = status.ended_at.value_or(launch::jobs::wall_time_now());
    write_if_first(*folder_, launch::jobs::end_of(status, ended_at));
  }
  return status;
}

std::optional<launch::jobs::WallTime> SubmittedJob::ended_at() const {
  if (!folder_) return std::nullopt;
  const auto end = read_end(*folder_);
  return end ? std::optional(end->ended_at) : std::nullopt;
}

void SubmittedJob::cancel() const {
  if (folder_) ask_to_cancel(*folder_);
  runner_->cancel(id());
}

/// The engine may not have the job yet. Or it has removed all traces of the job: Kubernetes does
/// when the job is cancelled.
launch::JobStatus SubmittedJob::status_of_the_runner() const {
  try {
    return runner_->status(id());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUsage) throw;
    launch::JobStatus status = status_of(*folder_);
    if (status.state != launch::JobState::kUnknown) return status;
    const bool was_recorded = !submission_.launcher;
    status.reason = fmt::format(
        "{}{}", was_recorded ? "" : "peal submit was killed during the start; ", error.message());
    if (const auto request = read_cancel_request(*folder_)) {
      status.state = launch::JobState::kCancelled;
      status.cause = launch::EndCause::kCancelled;
      status.exit_code = launch::kSignalBase + SIGTERM;  // as with the other runners
      status.reason = fmt::format("{} has cancelled it on {}", request->user, request->host);
    }
    return status;
  }
}

}  // namespace peal::cli
