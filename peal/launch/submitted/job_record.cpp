#include "peal/launch/submitted/job_record.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/split.h"
#include "peal/launch/jobs/job_status.h"

namespace peal::launch::submitted {
namespace {

/// Of a job with many ranks, the ends of all ranks come at once.
constexpr Timeout kBetweenStates{200};

/// Only Slurm starts a launcher again, for a job that it has put into its queue again. Keeps why
/// the last attempt of the earlier launcher has failed.
void keep_earlier_attempt(const jobs::JobFolder& folder) {
  try {
    const auto earlier = read_state(folder);
    if (!earlier) return;
    jobs::JobEnd killed;  // without a record
    killed.attempts = earlier->attempt + 1;
    const auto failed = jobs::attempt_before_requeue(read_end(folder).value_or(killed));
    if (failed && !read_failure(folder, failed->attempt)) write_requeued(folder, *failed);
  } catch (
      const Error&) {  // the attempt has started nothing and has no folder, or the disk is full
  }
}

}  // namespace

std::string as_sentence(std::string_view report) {
  constexpr std::string_view kMark = "peal: ";
  std::string sentence;
  for (std::string_view line : split(report, '\n')) {
    if (line.starts_with(kMark)) line.remove_prefix(kMark.size());
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (line.empty()) continue;
    if (!sentence.empty()) sentence += sentence.ends_with(':') ? " " : "; ";
    sentence += line;
  }
  return sentence;
}

JobRecord::JobRecord(jobs::JobFolder folder, std::string success_role)
    : folder_(std::move(folder)), success_role_(std::move(success_role)) {
  keep_earlier_attempt(folder_);
  state_.launcher = jobs::this_process();
  state_.started_at = state_.written_at = jobs::wall_time_now();
  write(folder_, state_);
  written_ = Clock::now();
  std::error_code no_end;
  std::filesystem::remove(folder_.end_file(), no_end);  // of an earlier start: the job runs again
}

void JobRecord::begin(int attempt, const ProcessPlan& plan) {
  state_.state = JobState::kPreparing;
  state_.reason = "its launcher connects with the hosts";
  state_.attempt = attempt;
  was_warned_ = false;
  state_.nodes.clear();
  node_of_rank_.clear();
  running_.clear();
  std::string role;
  int index = 0;
  for (const PlannedProcess& process : plan.processes) {
    if (process.node == static_cast<int>(state_.nodes.size())) {
      index = process.role == role ? index + 1 : 0;
      role = process.role;
      state_.nodes.push_back({.role = role,
                              .index = index,
                              .state = JobState::kPreparing,
                              .attempt = attempt,
                              .host = process.host});
      running_.push_back(0);
    }
    node_of_rank_.push_back(state_.nodes.size() - 1);
    ++running_.back();
  }
  write_now();
}

void JobRecord::wait(const std::string& reason) {
  state_.state = JobState::kPreparing;
  state_.reason = reason;
  write_later();
}

void JobRecord::restart(const std::string& failure, const std::string& reason) {
  try {
    write(folder_, FailedAttempt{.attempt = state_.attempt, .failure = failure});
  } catch (const Error&) {  // the disk is full; the job goes on
  }
  wait(reason);
}

void JobRecord::started() {
  state_.state = JobState::kRunning;
  state_.reason.clear();
  for (NodeStatus& node : state_.nodes) node.state = JobState::kRunning;
  write_now();
}

void JobRecord::warned() {
  state_.reason = "its time limit is near, and its ranks were asked to stop";
  was_warned_ = true;
  write_now();
}

NodeStatus& JobRecord::node_of(Rank rank) {
  return state_.nodes[node_of_rank_[static_cast<std::size_t>(rank)]];
}

/// Whether the success role has ended well: then the launcher ends all others.
bool JobRecord::is_decided() const {
  return !success_role_.empty() && std::ranges::all_of(state_.nodes, [&](const NodeStatus& node) {
    return node.role != success_role_ || node.state == JobState::kSucceeded;
  });
}

/// A node has the state of its first failure; of processes that the launcher has ended, if there is
/// none; and has succeeded after all its processes have.
void JobRecord::ended(const ProcessEnd& end) {
  NodeStatus& node = node_of(end.rank);
  const int left = --running_[node_of_rank_[static_cast<std::size_t>(end.rank)]];
  if (failed_by_itself(end) && node.state != JobState::kFailed) {
    node.state = JobState::kFailed;
    node.reason = fmt::format(
        "rank {} {}", end.rank, end.lost.empty() ? how_it_ended(end) : "was lost: " + end.lost);
    node.exit_code = shell_code(end.status);
  } else if (failed(end.status) && node.state == JobState::kRunning) {
    node.state = JobState::kCancelled;
    node.reason = is_decided()
                      ? fmt::format("ended because the role {} has succeeded", success_role_)
                      : "its launcher has ended it";
  } else if (left == 0 && node.state == JobState::kRunning) {
    node.state = JobState::kSucceeded;
    node.exit_code = 0;
  }
  write_later();
}

bool JobRecord::look() {
  const TimePoint now = Clock::now();
  if (now - looked_ >= kBetweenStates && !is_cancelled_) {
    looked_ = now;
    try {
      is_cancelled_ = read_cancel_request(folder_).has_value();
    } catch (const Error&) {  // a half-written or damaged request; the user may repeat it
    }
    if (is_cancelled_) {
      state_.state = JobState::kCancelling;
      write_later();
    }
  }
  write_if_due();
  return is_cancelled_;
}

void JobRecord::write_if_due() {
  const TimePoint now = Clock::now();
  const auto pause = has_changed_ ? Timeout(kBetweenStates) : Timeout(jobs::kStateEvery);
  if (now - written_ >= pause) write_now();
}

void JobRecord::write_now() {
  written_ = Clock::now();
  state_.written_at = jobs::wall_time_now();
  try {
    write(folder_, state_);
    has_changed_ = false;
  } catch (const Error&) {  // tried again after the pause
    has_changed_ = true;
  }
}

std::string JobRecord::describe(const ProcessEnd& end) const {
  const NodeStatus& node = state_.nodes[node_of_rank_[static_cast<std::size_t>(end.rank)]];
  return fmt::format("rank {} ({} {} on {}) {}",
                     end.rank,
                     node.role,
                     node.index,
                     node.host,
                     end.lost.empty() ? how_it_ended(end) : "was lost: " + end.lost);
}

void JobRecord::finish(jobs::JobEnd end) {
  for (NodeStatus& node : state_.nodes) {
    if (has_ended(node.state)) continue;
    node.reason =
        node.state == JobState::kPreparing ? "it did not start" : "its launcher has ended it";
    node.state = JobState::kCancelled;
  }
  if (was_warned_ && end.state == JobState::kSucceeded) {
    end.reason = "its ranks ended after the warning before its time limit";
  }
  end.nodes = state_.nodes;
  end.attempts = state_.attempt + 1;
  end.ended_at = jobs::wall_time_now();
  write(folder_, end);
}

}  // namespace peal::launch::submitted
