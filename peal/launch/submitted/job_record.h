// Writes how a submitted job goes into its folder, and looks there for a request to cancel the job
// (the duties in jobs/README.md). Called by job_launcher.cpp and, through LaunchWatch, by the loop
// of the launcher.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/job/process_plan.h"
#include "peal/launch/jobs/job_folder.h"
#include "peal/launch/launch_watch.h"

namespace peal::launch::submitted {

/// A report of several lines as one sentence, for a record: without "peal: " before its lines.
std::string as_sentence(std::string_view report);

/// A state that cannot be written, because the disk is full, is written later: it is not a reason
/// to end the job. Threads: one.
class JobRecord final : public LaunchWatch {
 public:
  /// Writes the first state. `success_role`: Job::success_role. Errors: resource.
  explicit JobRecord(jobs::JobFolder folder, std::string success_role = "");

  /// An attempt begins: the launcher connects with the hosts.
  void begin(int attempt, const ProcessPlan& plan);
  /// The launcher waits: "restart 1 of 3".
  void wait(const std::string& reason);
  /// The same after a failed attempt. `failure`: for users, such as "rank 3 was killed by SIGKILL".
  void restart(const std::string& failure, const std::string& reason);
  void started() override;
  void warned() override;
  void ended(const ProcessEnd& end) override;
  /// Returns whether a user has asked to cancel the job.
  bool look() override;

  /// "rank 3 (worker 2 on node1) was killed by SIGKILL"
  std::string describe(const ProcessEnd& end) const;

  /// Writes the end of the job. `end`: without nodes, attempts and time. Errors: resource.
  void finish(jobs::JobEnd end);

 private:
  NodeStatus& node_of(Rank rank);
  bool is_decided() const;
  void write_later() { has_changed_ = true; }
  void write_if_due();
  void write_now();

  const jobs::JobFolder folder_;
  const std::string success_role_;
  jobs::LauncherState state_;
  std::vector<std::size_t> node_of_rank_;  // in state_.nodes
  std::vector<int> running_;               // processes of each node
  bool has_changed_ = false;
  bool is_cancelled_ = false;
  bool was_warned_ = false;
  TimePoint written_{};
  TimePoint looked_{};
};

}  // namespace peal::launch::submitted
