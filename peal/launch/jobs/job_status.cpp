#include "peal/launch/jobs/job_status.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "peal/base/duration_text.h"
#include "peal/base/printable.h"

namespace peal::launch::jobs {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;

JobStatus status_at_the_end(const std::string& id, const JobEnd& end) {
  return {.id = id,
          .state = end.state,
          .engine_state = end.engine_state,
          .reason = end.reason,
          .nodes = end.nodes,
          .exit_code = end.exit_code,
          .cause = end.cause,
          .first_failure = end.first_failure,
          .failed_rank = end.failed_rank,
          .last_lines = end.last_lines,
          .records = end.records};
}

void describe_cancelling(const CancelRequest& cancel, JobStatus& status) {
  status.state = JobState::kCancelling;
  status.reason =
      fmt::format("{} has cancelled it on {}", printable(cancel.user), printable(cancel.host));
}

/// The launcher was killed, or its machine was: agents and guards end the ranks then.
void describe_lost_launcher(const LauncherProcess& launcher, bool is_cancelled, JobStatus& status) {
  status.state = is_cancelled ? JobState::kCancelled : JobState::kFailed;
  status.cause = is_cancelled ? EndCause::kCancelled : EndCause::kEngine;
  status.reason = fmt::format("{} is gone", describe(launcher));
  if (!is_cancelled) status.first_failure = status.reason;
  for (NodeStatus& node : status.nodes) {
    if (has_ended(node.state)) continue;
    node.state = status.state;
    node.reason = "it ended with its launcher";
  }
}

/// Returns nothing if the state is new enough.
std::optional<std::string> why_state_is_old(const LauncherState& state, WallTime now) {
  const milliseconds age = now - state.written_at;  // negative if the clocks of the hosts differ
  if (age <= kStateIsOld) return std::nullopt;
  return fmt::format(
      "{} has written nothing for {}, and is not visible from here: ask on that "
      "host",
      describe(state.launcher),
      duration_text(duration_cast<seconds>(age)));
}

JobStatus status_from_state(const JobRecords& records, WallTime now) {
  const LauncherState& state = *records.state;
  JobStatus status{.id = records.submission.id,
                   .state = state.state,
                   .engine_state = state.engine_state,
                   .reason = state.reason,
                   .nodes = state.nodes};
  if (records.launcher == Liveness::kGone) {
    describe_lost_launcher(state.launcher, records.cancel.has_value(), status);
    return status;
  }
  if (records.launcher == Liveness::kNotVisible) {
    if (const auto why = why_state_is_old(state, now)) {
      status.state = JobState::kUnknown;
      status.reason = *why;
      return status;
    }
  }
  if (records.cancel && !has_ended(status.state)) describe_cancelling(*records.cancel, status);
  return status;
}

JobStatus status_before_the_start(const JobRecords& records) {
  const Submission& submission = records.submission;
  JobStatus status{.id = submission.id};
  const bool is_gone = records.launcher == Liveness::kGone;
  if (!submission.launcher || (is_gone && has_engine(submission))) {
    status.reason = fmt::format("only {} knows its state", printable(submission.runner));
    return status;
  }
  status.state = JobState::kQueued;
  status.reason = "its launcher has not started yet";
  if (is_gone) {
    describe_lost_launcher(*submission.launcher, records.cancel.has_value(), status);
    status.reason += ", and has started nothing";
    if (!status.first_failure.empty()) status.first_failure = status.reason;
  } else if (records.cancel) {
    describe_cancelling(*records.cancel, status);
  }
  return status;
}

Liveness liveness_in(const JobRecords& records) {
  if (records.state) return liveness_of(records.state->launcher);
  if (records.submission.launcher) return liveness_of(*records.submission.launcher);
  return Liveness::kNotVisible;
}

JobStatus status_without_attempts(const JobRecords& records, WallTime now) {
  if (records.end) return status_at_the_end(records.submission.id, *records.end);
  if (records.state) return status_from_state(records, now);
  return status_before_the_start(records);
}

std::optional<FailedAttempt> last_failed_attempt(const JobFolder& folder) {
  std::vector<int> attempts = attempts_of(folder);
  std::ranges::reverse(attempts);
  for (const int attempt : attempts) {
    if (auto failed = read_failure(folder, attempt)) return failed;
  }
  return std::nullopt;
}

}  // namespace

std::optional<FailedAttempt> attempt_before_requeue(const JobEnd& end) {
  if (end.state == JobState::kSucceeded) return std::nullopt;
  // `scontrol requeue` ends a launcher by SIGTERM, as a cancellation does.
  const bool by_requeue = end.first_failure.empty() || end.cause == EndCause::kCancelled;
  return FailedAttempt{
      .attempt = std::max(0, end.attempts - 1),
      .failure = by_requeue ? "Slurm has put the job into its queue again" : end.first_failure};
}

JobStatus status_of(const JobRecords& records, WallTime now) {
  JobStatus status = status_without_attempts(records, now);
  status.failed_attempt = records.failed_attempt;
  return status;
}

JobRecords read_records(const JobFolder& folder) {
  constexpr int kMostReads = 10;  // more than the processes that take over from each other
  JobRecords records;
  for (int i = 0; i < kMostReads; ++i) {
    records = {.submission = read_submission(folder), .state = read_state(folder)};
    records.launcher = liveness_in(records);
    // After the liveness: a launcher writes its end before it ends.
    records.end = read_end(folder);
    records.cancel = read_cancel_request(folder);
    if (records.end || records.launcher != Liveness::kGone) break;
    // Another process may have taken over before the first one ended.
    const bool is_settled =
        read_submission(folder) == records.submission && read_state(folder) == records.state;
    if (is_settled) break;
  }
  records.failed_attempt = last_failed_attempt(folder);
  return records;
}

JobStatus status_of(const JobFolder& folder) {
  return status_of(read_records(folder), wall_time_now());
}

}  // namespace peal::launch::jobs
