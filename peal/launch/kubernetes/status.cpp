// From the state of the cluster to the status of a job.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "peal/launch/kubernetes/cluster_state.h"

namespace peal::launch::kubernetes {
namespace {

bool has_ended_well(const RoleJob& job) { return job.end == "Complete"; }
bool has_failed(const RoleJob& job) { return job.end == "Failed"; }

/// "Unschedulable: 0/3 nodes are available."
std::string word_and_message(const Pod& pod) {
  if (pod.message.empty()) return pod.word;
  return fmt::format("{}: {}", pod.word, pod.message);
}

std::string signal_name(int exit_code) {
  const char* const name = ::sigabbrev_np(exit_code - kSignalBase);
  return name == nullptr ? std::string() : fmt::format("SIG{}", name);
}

/// How a failed pod has ended, as a part of a sentence.
std::string how_it_failed(const Pod& pod) {
  if (pod.word == "OOMKilled") {
    return pod.memory_limit.empty()
               ? std::string("ran out of memory (OOMKilled)")
               : fmt::format("ran out of memory: its limit is {} (OOMKilled)", pod.memory_limit);
  }
  if (!pod.exit_code) return fmt::format("failed without an exit code ({})", word_and_message(pod));
  if (pod.word != "Error" && pod.word != "Completed" && !pod.word.empty()) {
    return fmt::format("ended with exit code {} ({})", *pod.exit_code, word_and_message(pod));
  }
  if (*pod.exit_code > kSignalBase) {
    if (const std::string name = signal_name(*pod.exit_code); !name.empty()) {
      return fmt::format("ended by {} (exit code {})", name, *pod.exit_code);
    }
  }
  return fmt::format("ended with exit code {}", *pod.exit_code);
}

/// A node with several ranks runs `peal run`. The message is: exec: "peal": not found in $PATH.
bool lacks_peal(const Pod& pod) {
  return pod.exit_code && pod.message.find("\"peal\"") != std::string::npos;
}

EndCause cause_of(const Pod& pod) {
  constexpr std::array<std::string_view, 4> kHostTaken = {
      "Evicted", "NodeLost", "NodeShutdown", "Terminated"};
  constexpr std::array<std::string_view, 9> kNoContainer = {"ContainerCannotRun",
                                                            "CreateContainerConfigError",
                                                            "CreateContainerError",
                                                            "ErrImageNeverPull",
                                                            "ErrImagePull",
                                                            "ImagePullBackOff",
                                                            "InvalidImageName",
                                                            "RunContainerError",
                                                            "StartError"};
  if (pod.word == "OOMKilled") return EndCause::kOutOfMemory;
  if (pod.word == "DeadlineExceeded") return EndCause::kTimeLimit;
  if (pod.word == "Preempting") return EndCause::kPreempted;
  if (std::ranges::count(kHostTaken, pod.word) > 0) return EndCause::kHostLost;
  if (std::ranges::count(kNoContainer, pod.word) > 0) return EndCause::kNotStarted;
  if (!pod.exit_code) return EndCause::kEngine;
  return *pod.exit_code > kSignalBase ? EndCause::kSignal : EndCause::kProgram;
}

void describe_waiting(const Pod& pod, NodeStatus& node) {
  node.state = pod.is_placed ? JobState::kPreparing : JobState::kQueued;
  if (!pod.word.empty()) node.engine_state = pod.word;
  node.reason = pod.message;
}

void describe_pod(const Pod& pod, NodeStatus& node) {
  node.engine_name = pod.name;
  node.host = pod.host;
  node.engine_state = pod.phase;
  if (pod.phase == "Succeeded") {
    node.state = JobState::kSucceeded;
    node.exit_code = 0;
  } else if (pod.phase == "Failed") {
    node.state = JobState::kFailed;
    node.exit_code = pod.exit_code;
    if (!pod.word.empty()) node.engine_state = pod.word;
    node.reason = how_it_failed(pod);
  } else if (pod.is_deleted) {
    node.state = JobState::kCancelling;
  } else if (pod.phase == "Pending") {
    describe_waiting(pod, node);
  } else if (pod.phase == "Running") {
    node.state = JobState::kRunning;
    // A container that is started again: CrashLoopBackOff.
    if (!pod.word.empty() && !pod.exit_code) describe_waiting(pod, node);
  }
}

NodeStatus describe_node(const RoleJob& job, std::size_t index) {
  NodeStatus node{.role = job.role, .index = job.first_index + static_cast<int>(index)};
  const std::vector<Pod>& starts = job.pods[index];
  if (starts.empty()) {
    const bool is_over = !job.end.empty() || job.is_deleted;
    node.state = is_over ? JobState::kCancelled : JobState::kQueued;
    node.reason = is_over ? std::string("Kubernetes ended its pod when the job ended")
                          : fmt::format(
                                "Kubernetes has not made its pod yet: `kubectl describe "
                                "job {}` says why",
                                job.name);
    if (job.is_suspended && !is_over) {
      node.engine_state = "Suspended";
      node.reason.clear();
    }
    return node;
  }
  describe_pod(starts.back(), node);
  for (const Pod& pod : starts) node.attempt += pod.restarts + 1;
  --node.attempt;
  return node;
}

std::string name_of_node(const NodeStatus& node) {
  return fmt::format("{}-{}", node.role, node.index);
}

/// The node that has failed first, by the clock of the cluster, with its pod. The rank is known
/// only for a node with one rank, because Kubernetes does not see the ranks of a node.
struct Failure {
  const NodeStatus* node = nullptr;
  const Pod* pod = nullptr;
  std::optional<Rank> rank{};
};
Failure first_failure(const std::vector<RoleJob>& jobs, const std::vector<NodeStatus>& nodes) {
  Failure first;
  auto node = nodes.begin();
  Rank rank = 0;
  for (const RoleJob& job : jobs) {
    for (const std::vector<Pod>& starts : job.pods) {
      const NodeStatus& here = *node++;
      const Rank first_rank = std::exchange(rank, rank + job.ranks_per_node);
      if (here.state != JobState::kFailed) continue;
      const Pod& pod = starts.back();
      if (first.pod != nullptr && pod.finished >= first.pod->finished) continue;
      first = {.node = &here, .pod = &pod};
      if (job.ranks_per_node == 1) first.rank = first_rank;
    }
  }
  return first;
}

/// The first node that waits, for a sentence; null if none.
const NodeStatus* waiting_node(const std::vector<NodeStatus>& nodes) {
  const auto waits = [](const NodeStatus& node) {
    return node.state == JobState::kQueued || node.state == JobState::kPreparing;
  };
  const auto explained = std::ranges::find_if(
      nodes, [&](const NodeStatus& node) { return waits(node) && !node.engine_state.empty(); });
  if (explained != nodes.end()) return &*explained;
  const auto any = std::ranges::find_if(nodes, waits);
  return any == nodes.end() ? nullptr : &*any;
}

std::string why_it_waits(const NodeStatus& node) {
  std::string why = node.engine_state;
  if (!node.reason.empty()) why += why.empty() ? node.reason : ": " + node.reason;
  return fmt::format("{} waits ({})", name_of_node(node), why);
}

void describe_failure(const std::vector<RoleJob>& jobs, JobStatus& status) {
  const RoleJob& job = *std::ranges::find_if(jobs, has_failed);
  status.engine_state = job.end_reason;
  if (job.end_reason == "DeadlineExceeded") {
    status.state = JobState::kCancelled;
    status.cause = EndCause::kTimeLimit;
    status.reason = "the job has reached its max_run_time, and Kubernetes has ended it";
    return;
  }
  status.state = JobState::kFailed;
  const Failure first = first_failure(jobs, status.nodes);
  if (first.pod == nullptr) {
    status.cause = EndCause::kEngine;
    status.first_failure =
        fmt::format("Kubernetes has ended role {}: {}", job.role, job.end_message);
  } else {
    status.exit_code = first.pod->exit_code;
    status.cause = cause_of(*first.pod);
    status.first_failure = fmt::format("{} {}", name_of_node(*first.node), first.node->reason);
    if (!first.pod->host.empty()) status.first_failure += " on " + first.pod->host;
    if (!first.rank && lacks_peal(*first.pod)) {
      status.first_failure += "; ranks_per_node needs the program peal in the image";
    }
    status.failed_rank = first.rank;
  }
  // A rank gives up if another rank never starts. Then the other rank is the cause.
  if (const NodeStatus* const waiting = waiting_node(status.nodes)) {
    status.reason = "when the job failed, " + why_it_waits(*waiting);
  }
}

void describe_progress(const std::vector<RoleJob>& jobs, JobStatus& status) {
  const auto count = [&](JobState state) {
    return std::ranges::count(status.nodes, state, &NodeStatus::state);
  };
  const auto all = static_cast<std::ptrdiff_t>(status.nodes.size());
  const auto active = count(JobState::kRunning) + count(JobState::kSucceeded);
  const NodeStatus* const waiting = waiting_node(status.nodes);
  if (active == all) {
    status.state = JobState::kRunning;
  } else if (count(JobState::kQueued) == all) {
    status.state = JobState::kQueued;
  } else if (count(JobState::kUnknown) > 0 && waiting == nullptr) {
    status.state = JobState::kUnknown;
  } else {
    status.state = JobState::kPreparing;
  }
  if (waiting != nullptr) status.engine_state = waiting->engine_state;
  if (std::ranges::any_of(jobs, &RoleJob::is_suspended)) status.engine_state = "Suspended";
  status.reason = fmt::format("{} of {} nodes run", active, all);
  if (waiting != nullptr) status.reason += "; " + why_it_waits(*waiting);
  const auto failed = std::ranges::find(status.nodes, JobState::kFailed, &NodeStatus::state);
  if (failed != status.nodes.end()) {
    status.reason += fmt::format(
        "; {} {}, and Kubernetes starts it again", name_of_node(*failed), failed->reason);
  }
}

/// A job has failed with its first role that fails, and has succeeded with its last one that
/// decides.
void add_end_time(const std::vector<RoleJob>& jobs, JobStatus& status) {
  const bool has_succeeded = status.state == JobState::kSucceeded;
  std::vector<std::string> times;
  for (const RoleJob& job : jobs) {
    const bool counts = has_succeeded ? job.decides : has_failed(job);
    if (counts && !job.end_time.empty()) times.push_back(job.end_time);
  }
  if (times.empty()) return;
  status.ended_at =
      try_parse_time(has_succeeded ? std::ranges::max(times) : std::ranges::min(times));
}

}  // namespace

void end_nodes(const std::string& role, JobStatus& status) {
  for (NodeStatus& node : status.nodes) {
    if (node.role != role || has_ended(node.state)) continue;
    node.state = JobState::kCancelled;
    node.reason = "ended because the job has its result";
  }
}

JobStatus status_of(const std::string& id, const std::vector<RoleJob>& jobs) {
  JobStatus status{.id = id};
  for (const RoleJob& job : jobs) {
    for (std::size_t index = 0; index < job.pods.size(); ++index) {
      status.nodes.push_back(describe_node(job, index));
    }
  }
  const auto decided = [](const RoleJob& job) { return !job.decides || has_ended_well(job); };
  if (std::ranges::any_of(jobs, &RoleJob::is_deleted)) {
    status.state = JobState::kCancelling;
    status.reason = "its objects are being deleted";
  } else if (std::ranges::all_of(jobs, decided)) {
    status.state = JobState::kSucceeded;
    status.engine_state = "Complete";
    status.exit_code = 0;
  } else if (std::ranges::any_of(jobs, has_failed)) {
    describe_failure(jobs, status);
  } else {
    describe_progress(jobs, status);
  }
  for (const RoleJob& job : jobs) {
    const bool is_over = !job.end.empty() || job.is_suspended;
    if (has_ended(status.state) && is_over) end_nodes(job.role, status);
  }
  if (has_ended(status.state)) add_end_time(jobs, status);
  return status;
}

}  // namespace peal::launch::kubernetes
