// The answers of the cluster about a job, as values, and the status that follows from them. Pure.
// Called by the runner with the answers of `kubectl get -o json`.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/units.h"
#include "peal/launch/runner.h"

namespace peal::launch::kubernetes {

/// One start of a node.
struct Pod {
  std::string name{};
  std::string phase{};    // "Pending", "Running", "Succeeded", "Failed", "Unknown"
  std::string created{};  // RFC 3339, which sorts by time
  std::string finished{};
  std::string host{};
  std::string word{};     // the most precise word of Kubernetes: "ImagePullBackOff", "OOMKilled"
  std::string message{};  // of Kubernetes, about the word
  std::string memory_limit{};
  bool is_placed = false;
  bool is_deleted = false;  // Kubernetes has asked it to end
  int restarts = 0;         // of its container, in place
  std::optional<int> exit_code{};
};

/// An Indexed Job: the nodes of a role, or one of them.
struct RoleJob {
  std::string name{};
  std::string role{};
  Rank first_rank = 0;
  int first_index = 0;  // of its first node in the role
  int nodes = 1;
  int ranks_per_node = 1;
  bool decides = true;  // see Job::success_role
  bool is_suspended = false;
  bool is_deleted = false;
  std::string end{};         // "Complete" or "Failed"; empty: not ended
  std::string end_reason{};  // "BackoffLimitExceeded"
  std::string end_message{};
  std::string end_time{};                // RFC 3339; empty: not known
  std::vector<std::vector<Pod>> pods{};  // by index of the node, then in the order of their starts
};

/// The role jobs of a list that kubectl printed, by rank. Errors: resource (not the text of
/// kubectl).
std::vector<RoleJob> read_role_jobs(std::string_view list);

/// Sets RoleJob::end of all `jobs` from the first TrainJob in a list. Returns false without a
/// TrainJob.
bool read_train_job(std::string_view list, std::vector<RoleJob>& jobs);

/// "2026-11-29T04:21:50Z"; nothing for another text.
std::optional<std::chrono::sys_time<std::chrono::milliseconds>> try_parse_time(
    const std::string& text);

/// Marks the nodes of the role that have not ended as cancelled. Called after the job has ended.
void end_nodes(const std::string& role, JobStatus& status);

/// The status of the job. `jobs` is not empty.
JobStatus status_of(const std::string& id, const std::vector<RoleJob>& jobs);

}  // namespace peal::launch::kubernetes
