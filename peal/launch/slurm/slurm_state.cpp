#include "peal/launch/slurm/slurm_state.h"

#include <signal.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/base/split.h"
#include "peal/launch/allocation_end.h"
#include "peal/launch/lost_batch_host.h"
#include "peal/launch/process_end.h"
#include "peal/launch/scontrol.h"

namespace peal::launch::slurm {
namespace {

constexpr int kTimedOut = 124;  // as in job_launcher.h

/// An end that Slurm has decided.
struct EngineEnd {
  std::string_view state;
  EndCause cause;
  std::string_view sentence;
};

constexpr std::array kEngineEnds = {
    EngineEnd{"TIMEOUT", EndCause::kTimeLimit, "it ran longer than its time limit in Slurm"},
    EngineEnd{"DEADLINE", EndCause::kTimeLimit, "it did not end before its deadline in Slurm"},
    EngineEnd{"NODE_FAIL", EndCause::kHostLost, "Slurm has lost a node of the job"},
    EngineEnd{"BOOT_FAIL", EndCause::kNotStarted, "Slurm could not boot a node of the job"},
    EngineEnd{"OUT_OF_MEMORY",
              EndCause::kOutOfMemory,
              "the job has used more memory than it had asked for"},
    EngineEnd{
        "PREEMPTED", EndCause::kPreempted, "Slurm has ended it for a job with a higher priority"},
    EngineEnd{"REVOKED", EndCause::kEngine, "another cluster has started the job"},
    EngineEnd{"CANCELLED", EndCause::kCancelled, "Slurm was asked to end it"},
};

const EngineEnd* engine_end(std::string_view state) {
  const auto found = std::ranges::find(kEngineEnds, state, &EngineEnd::state);
  return found == kEngineEnds.end() ? nullptr : &*found;
}

bool is_one_of(std::string_view state, std::initializer_list<std::string_view> states) {
  return std::ranges::find(states, state) != states.end();
}

/// "3:0", "0:9": the exit code and the signal.
std::optional<int> read_exit_code(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() != 2) return std::nullopt;
  const auto code = try_parse_number<int>(parts[0]);
  const auto signal = try_parse_number<int>(parts[1]);
  if (!code || !signal) return std::nullopt;
  return *signal > 0 ? kSignalBase + *signal : *code;
}

std::string asked(const jobs::CancelRequest& request) {
  return fmt::format("{} has cancelled it on {}", printable(request.user), printable(request.host));
}

void end_nodes(JobStatus& status) {
  for (NodeStatus& node : status.nodes) {
    if (has_ended(node.state)) continue;
    node.state = status.state;
    node.reason = "it ended with the job";
  }
}

/// Nodes that a signal ended have not failed: Slurm ended them with the job.
void cancel_signalled_nodes(JobStatus& status) {
  constexpr int kTerminated = kSignalBase + SIGTERM;
  constexpr int kKilled = kSignalBase + SIGKILL;
  for (NodeStatus& node : status.nodes) {
    const bool is_signalled = node.exit_code == kTerminated || node.exit_code == kKilled;
    if (node.state != JobState::kFailed || !is_signalled) continue;
    node.state = JobState::kCancelled;
    node.reason = "it ended with the job";
  }
}

JobStatus ended_by_slurm(const EngineEnd& end,
                         const SlurmJob& job,
                         const jobs::JobRecords& records,
                         JobStatus status) {
  const std::string first_failure = status.first_failure;
  const bool is_failure = end.cause != EndCause::kTimeLimit && end.cause != EndCause::kCancelled;
  status.state = is_failure ? JobState::kFailed : JobState::kCancelled;
  status.cause = end.cause;
  status.reason = fmt::format("{} ({})", end.sentence, job.state);
  if (is_failure) {
    status.first_failure = status.reason;
    if (!first_failure.empty()) status.first_failure += "; " + first_failure;
  } else {
    status.first_failure.clear();
    status.failed_rank.reset();
    status.last_lines.clear();
    cancel_signalled_nodes(status);
  }
  if (end.cause == EndCause::kTimeLimit) status.exit_code = kTimedOut;
  if (end.cause == EndCause::kCancelled && records.cancel) status.reason = asked(*records.cancel);
  end_nodes(status);
  return status;
}

/// The launcher has ended, and has left no end.
JobStatus without_an_end(const SlurmJob& job, const jobs::JobRecords& records, JobStatus status) {
  status.exit_code = job.exit_code;
  status.reason.clear();
  status.first_failure.clear();
  if (records.cancel) {
    status.state = JobState::kCancelled;
    status.cause = EndCause::kCancelled;
    status.reason = asked(*records.cancel);
  } else if (job.exit_code == 0) {
    status.state = JobState::kSucceeded;
  } else {
    status.state = JobState::kFailed;
    status.cause = EndCause::kEngine;
    status.reason = fmt::format(
        "its launcher ended with exit code {} and has left no result: see launcher.log in the "
        "folder of the job, which the nodes must reach too",
        job.exit_code.value_or(1));
    status.first_failure = status.reason;
  }
  end_nodes(status);
  return status;
}

/// "Slurm's reason: PartitionConfig; ...": some reasons last until the job or the cluster changes.
std::string reason_text(const std::string& reason) {
  if (reason.empty()) return "";
  static constexpr std::array<std::string_view, 6> kLasting = {"PartitionConfig",
                                                               "PartitionNodeLimit",
                                                               "PartitionTimeLimit",
                                                               "BadConstraints",
                                                               "QOSMaxNodePerJobLimit",
                                                               "AssocMaxNodePerJobLimit"};
  const bool lasts = std::ranges::find(kLasting, reason) != kLasting.end();
  return "Slurm's reason: " + printable(reason) +
         (lasts ? "; the job does not fit and will not start: cancel it, and submit it with other "
                  "resources"
                : "");
}

/// What the user can do after the loss of the launcher's node. As in lost_batch_host.h, no agent
/// starts a job with several components again.
std::string advice_without_a_launcher(const SlurmJob& job, const jobs::Submission& submission) {
  const std::string cancel = fmt::format("free the nodes with `peal cancel {}`", submission.id);
  if (!job.may_requeue) return "Slurm does not start the job again (--no-requeue): " + cancel;
  const std::string requeue =
      fmt::format("use `scontrol requeue {}`, or {}", printable(submission.engine_id), cancel);
  if (job.is_component) return "To start the job again, " + requeue;
  return "Usually an agent on one of these nodes starts the job again. If not, " + requeue;
}

/// With --no-kill, Slurm does not end a job of several nodes that loses the node of its launcher.
/// Until an agent starts it again, or the user decides, it has not ended.
JobStatus without_its_launcher(const SlurmJob& job,
                               const jobs::JobRecords& records,
                               JobStatus status) {
  status.state = JobState::kUnknown;
  status.reason = fmt::format(
      "Slurm has lost {}, on which the launcher ran, and keeps the other nodes for the job. {}",
      printable(job.lost_host),
      advice_without_a_launcher(job, records.submission));
  for (NodeStatus& node : status.nodes) node.state = JobState::kUnknown;
  return status;
}

JobStatus waiting(const SlurmJob& job, const jobs::JobRecords& records) {
  JobStatus status{.id = records.submission.id,
                   .state = job.state == "PENDING" ? JobState::kQueued : JobState::kPreparing,
                   .engine_state = job.state,
                   .reason = reason_text(job.reason),
                   .failed_attempt = records.failed_attempt};
  if (records.cancel) {
    status.state = JobState::kCancelling;
    status.reason = asked(*records.cancel);
  }
  return status;
}

JobStatus forgotten(const jobs::JobRecords& records, JobStatus status) {
  status.state = JobState::kUnknown;
  status.reason = "Slurm does not know it any more, and its launcher has left no result";
  status.first_failure.clear();
  if (records.cancel) {
    status.state = JobState::kCancelled;
    status.reason = asked(*records.cancel);
    end_nodes(status);
  }
  return status;
}

bool is_being_submitted(const jobs::JobRecords& records) {
  return !records.state && records.submission.launcher && records.launcher != jobs::Liveness::kGone;
}

/// A preemption has ended the launcher, or a signal has done so without a `peal cancel`. Slurm does
/// not show yet what the job becomes. Ranks that end with 0 at a preemption without grace are not
/// a success: only Slurm knows whether it has ended them.
bool may_change(const SlurmJob& job, const jobs::JobRecords& records) {
  if (!records.end || job.state != "COMPLETING") return false;
  const auto cause = records.end->cause;
  return job.is_preempted || cause == EndCause::kPreempted ||
         (cause == EndCause::kCancelled && !records.cancel);
}

/// Not of the launcher of an earlier start of the same job, before a requeue.
bool has_present_state(const jobs::JobRecords& records) {
  return records.state && records.launcher != jobs::Liveness::kGone;
}

}  // namespace

std::vector<SlurmJob> read_scontrol(std::string_view text) {
  std::vector<SlurmJob> jobs;
  for (const std::string_view line : split(text, '\n')) {
    SlurmJob job{.name = slurm_field(line, "JobName"),
                 .state = slurm_field(line, "JobState"),
                 .reason = slurm_field(line, "Reason"),
                 .exit_code = read_exit_code(slurm_field(line, "ExitCode")),
                 .requeues = try_parse_number<int>(slurm_field(line, "Restarts")).value_or(0)};
    job.lost_host = lost_batch_host(line);
    job.is_preempted = has_preempt_time(line);
    job.may_requeue = slurm_field(line, "Requeue") == "1";
    job.is_component = !slurm_field(line, "HetJobId").empty();
    if (job.reason == "None") job.reason.clear();
    if (!job.state.empty()) jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<SlurmJob> read_sacct(std::string_view text) {
  std::vector<SlurmJob> jobs;
  for (const std::string_view line : split(text, '\n')) {
    const auto fields = split(line, '|');
    if (fields.size() != 3) continue;
    // "CANCELLED by 1000"
    jobs.push_back({.name = std::string(fields[0]),
                    .state = std::string(split(fields[1], ' ').front()),
                    .exit_code = read_exit_code(fields[2])});
  }
  return jobs;
}

std::optional<SlurmJob> decisive(const std::vector<SlurmJob>& components) {
  if (components.empty()) return std::nullopt;
  const auto ended = std::ranges::find_if(components, [](const SlurmJob& job) {
    return job.state != "CANCELLED" && engine_end(job.state) != nullptr;
  });
  return ended == components.end() ? components.front() : *ended;
}

bool is_final(std::string_view state) {
  return is_one_of(state, {"COMPLETED", "FAILED"}) || engine_end(state) != nullptr;
}

bool has_final_state(const std::optional<jobs::JobEnd>& end) {
  return end && is_final(end->engine_state);
}

std::optional<jobs::JobEnd> end_of_this_start(const jobs::JobRecords& records,
                                              const SlurmJob& job) {
  const bool is_earlier = records.end && records.end->requeues < job.requeues;
  return is_earlier ? std::nullopt : records.end;
}

JobStatus status_of(const jobs::JobRecords& all,
                    const std::optional<SlurmJob>& known,
                    jobs::WallTime now) {
  if (!known) {
    JobStatus status = jobs::status_of(all, now);
    return all.end || is_being_submitted(all) ? status : forgotten(all, std::move(status));
  }
  const SlurmJob& job = *known;
  jobs::JobRecords records = all;
  records.end = end_of_this_start(all, job);
  if (all.end && !records.end) {
    if (auto failed = jobs::attempt_before_requeue(*all.end)) records.failed_attempt = failed;
  }
  // How the job ended follows from Slurm, not from a launcher that is gone.
  if (is_final(job.state)) records.launcher = jobs::Liveness::kNotVisible;
  JobStatus status = jobs::status_of(records, now);
  if (has_final_state(records.end)) return status;
  status.engine_state = job.state;
  if (const EngineEnd* end = engine_end(job.state)) {
    return ended_by_slurm(*end, job, records, std::move(status));
  }
  if (is_one_of(job.state, {"PENDING", "CONFIGURING"})) return waiting(job, records);
  if (may_change(job, records)) {
    JobStatus waits = waiting({.state = job.state, .reason = {}}, records);
    if (!records.cancel) waits.reason = records.end->first_failure;
    if (waits.reason.empty()) waits.reason = "Slurm preempts it";
    return waits;
  }
  if (records.end) return status;
  if (!job.lost_host.empty() && !records.cancel) {
    return without_its_launcher(job, records, std::move(status));
  }
  if (is_one_of(job.state, {"RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT"})) {
    if (has_present_state(records)) return status;
    return waiting({.state = job.state, .reason = {}}, records);
  }
  if (is_one_of(job.state, {"COMPLETED", "FAILED"})) {
    return without_an_end(job, records, std::move(status));
  }
  status.state = JobState::kUnknown;
  status.reason = reason_text(job.reason);
  return status;
}

}  // namespace peal::launch::slurm
