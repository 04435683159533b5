#include "peal/launch/submitted/job_record.h"

#include <signal.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/temporary_folder.h"
#include "peal/launch/jobs/job_status.h"

namespace peal::launch::submitted {
namespace {

using testing::HasSubstr;

const Job kJob{.name = "j",
               .roles = {{.name = "a", .ranks_per_node = 2, .command = {"p"}},
                         {.name = "b", .nodes = {2, 2}, .command = {"p"}}}};

class JobRecordTest : public testing::Test {
 protected:
  JobRecordTest()
      : folder_(jobs::make_job_folder(temporary_.path(), {.job = kJob})),
        plan_(plan_processes(kJob, std::vector<JobHost>{{"h0", 9}}, {"h0", 1})) {}

  /// Until the record has written its next state.
  template <class Condition>
  void look_until(JobRecord& record, Condition condition) {
    const Deadline deadline = Deadline::after(Timeout(30'000));
    while (!condition() && !deadline.passed()) {
      record.look();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(condition());
  }
  JobStatus status() const { return status_of(folder_); }

  TemporaryFolder temporary_;
  jobs::JobFolder folder_;
  ProcessPlan plan_;
};

TEST_F(JobRecordTest, TheFirstStateIsThereAtOnceAndNamesThisProcess) {
  const JobRecord record(folder_);
  const auto state = read_state(folder_);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->launcher, jobs::this_process());
  EXPECT_EQ(state->state, JobState::kPreparing);
}

TEST_F(JobRecordTest, NodesFollowThePlanAndTheirProcesses) {
  JobRecord record(folder_);
  record.begin(0, plan_);
  record.started();
  record.ended({.rank = 0, .status = 0});
  record.ended({.rank = 2, .status = SIGKILL});
  look_until(record, [&] { return status().nodes.size() == 3 && status().nodes[1].exit_code; });
  const JobStatus seen = status();
  EXPECT_EQ(seen.state, JobState::kRunning);
  EXPECT_EQ(seen.nodes[0].role, "a");
  EXPECT_EQ(seen.nodes[0].state, JobState::kRunning) << "one of its two ranks still runs";
  EXPECT_EQ(seen.nodes[1].role, "b");
  EXPECT_EQ(seen.nodes[1].state, JobState::kFailed);
  EXPECT_EQ(seen.nodes[1].exit_code, 137);
  EXPECT_THAT(seen.nodes[1].reason, HasSubstr("rank 2 was killed by SIGKILL"));
  EXPECT_EQ(seen.nodes[2].index, 1);
  EXPECT_EQ(seen.nodes[2].state, JobState::kRunning);
  record.ended({.rank = 1, .status = 0});
  look_until(record, [&] { return status().nodes[0].state == JobState::kSucceeded; });
}

TEST_F(JobRecordTest, TheNodesAndTheStartAreThereAtOnce) {
  JobRecord record(folder_);
  record.begin(0, plan_);
  EXPECT_EQ(status().nodes.size(), 3u);
  EXPECT_EQ(status().state, JobState::kPreparing);
  record.started();
  EXPECT_EQ(status().state, JobState::kRunning);
}

TEST_F(JobRecordTest, ARequestToCancelIsSeenOnce) {
  JobRecord record(folder_);
  record.begin(0, plan_);
  record.started();
  EXPECT_FALSE(record.look());
  ask_to_cancel(folder_);
  look_until(record, [&] { return record.look(); });
  EXPECT_EQ(status().state, JobState::kCancelling);
}

TEST_F(JobRecordTest, TheEndKeepsTheNodesAndTheAttempts) {
  JobRecord record(folder_);
  record.begin(0, plan_);
  record.begin(1, plan_);
  record.started();
  for (Rank rank = 0; rank < 4; ++rank) record.ended({.rank = rank, .status = 0});
  record.finish({.state = JobState::kSucceeded, .exit_code = 0});
  const auto end = read_end(folder_);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->attempts, 2);
  EXPECT_THAT(end->nodes, testing::Each(testing::Field(&NodeStatus::state, JobState::kSucceeded)));
  EXPECT_EQ(status().state, JobState::kSucceeded);
}

TEST_F(JobRecordTest, TheFailureBeforeARestartIsKeptAlsoAfterSuccess) {
  JobRecord record(folder_);
  record.begin(0, plan_);
  std::filesystem::create_directories(folder_.attempt_directory(0));
  record.restart("rank 1 failed", "restart 1 of 2");
  const FailedAttempt expected{.attempt = 0, .failure = "rank 1 failed"};
  EXPECT_EQ(status().failed_attempt, expected);
  look_until(record, [&] { return status().reason == "restart 1 of 2"; });
  record.begin(1, plan_);
  record.finish({.state = JobState::kSucceeded, .exit_code = 0});
  EXPECT_EQ(status().failed_attempt, expected);
}

TEST_F(JobRecordTest, ALauncherThatSlurmStartsAgainKeepsWhyTheEarlierAttemptEnded) {
  std::filesystem::create_directories(folder_.attempt_directory(0));
  {
    JobRecord record(folder_);
    record.begin(0, plan_);
    record.finish({.cause = EndCause::kPreempted, .first_failure = "Slurm has preempted the job"});
  }
  JobRecord again(folder_);
  EXPECT_FALSE(read_end(folder_).has_value());
  const FailedAttempt preempted{.attempt = 0, .failure = "Slurm has preempted the job"};
  EXPECT_EQ(status().failed_attempt, preempted);
  EXPECT_EQ(jobs::restarts_of(folder_), 0) << "a requeue is not a restart";
  std::filesystem::create_directories(folder_.attempt_directory(1));
  again.begin(1, plan_);
  const JobRecord third(folder_);  // the second launcher was killed
  const FailedAttempt killed{.attempt = 1, .failure = "Slurm has put the job into its queue again"};
  EXPECT_EQ(status().failed_attempt, killed);
}

TEST_F(JobRecordTest, NodesThatDidNotStartSaySo) {
  JobRecord record(folder_);
  record.begin(0, plan_);
  record.finish({.state = JobState::kFailed, .first_failure = "no route to h0"});
  EXPECT_THAT(status().nodes,
              testing::Each(testing::Field(&NodeStatus::reason, "it did not start")));
}

TEST_F(JobRecordTest, NodesThatEndAfterTheSuccessRoleNameIt) {
  const ProcessEnd by_request{.status = SIGTERM, .ended_by = EndedBy::kRequest};
  for (const std::string role : {"", "b"}) {
    JobRecord record(folder_, role);
    record.begin(0, plan_);
    record.started();
    record.ended({.rank = 2, .status = 0});
    record.ended({.rank = 3, .status = 0});
    record.ended(by_request);
    record.finish({.state = JobState::kSucceeded, .exit_code = 0});
    EXPECT_EQ(status().nodes[0].state, JobState::kCancelled);
    EXPECT_EQ(
        status().nodes[0].reason,
        role.empty() ? "its launcher has ended it" : "ended because the role b has succeeded");
  }
}

TEST_F(JobRecordTest, AFailureIsDescribedWithItsNodeAndHost) {
  JobRecord record(folder_);
  record.begin(0, plan_);
  EXPECT_EQ(record.describe({.rank = 3, .status = 5 << 8}),
            "rank 3 (b 1 on h0) ended with exit code 5");
  EXPECT_EQ(record.describe({.rank = 1, .status = SIGKILL, .lost = "no sign of life for 2 s"}),
            "rank 1 (a 0 on h0) was lost: no sign of life for 2 s");
}

TEST(AsSentenceTest, LinesAreJoined) {
  EXPECT_EQ(as_sentence(""), "");
  EXPECT_EQ(as_sentence("peal: a\npeal: b\n"), "a; b");
  EXPECT_EQ(as_sentence("2 hosts cannot be used:\n  a: no route\n  b: refused\n"),
            "2 hosts cannot be used: a: no route; b: refused");
}

}  // namespace
}  // namespace peal::launch::submitted
