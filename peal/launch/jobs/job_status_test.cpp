#include "peal/launch/jobs/job_status.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/idle_child.h"
#include "peal/base/testing/temporary_folder.h"

namespace peal::launch::jobs {
namespace {

using std::chrono::seconds;

const WallTime kNow{std::chrono::hours(500'000)};
const LauncherProcess kLauncher = {.machine = {.host = "node1"}, .pid = 12, .start_time = 7};
const CancelRequest kCancel = {.asked_at = kNow, .host = "node2", .user = "ann"};
const std::vector<NodeStatus> kNodes = {
    {.role = "a", .index = 0, .state = JobState::kSucceeded, .exit_code = 0},
    {.role = "a", .index = 1, .state = JobState::kRunning, .host = "node3"}};

LauncherState running(seconds age = seconds(0)) {
  return {.launcher = kLauncher,
          .state = JobState::kRunning,
          .reason = "2 of 2 nodes run",
          .nodes = kNodes,
          .written_at = kNow - age};
}

JobRecords with_state(Liveness launcher, seconds age = seconds(0)) {
  return {.submission = {.id = "a-1", .launcher = kLauncher},
          .state = running(age),
          .launcher = launcher};
}

JobRecords without_state(Liveness launcher) {
  return {.submission = {.id = "a-1", .launcher = kLauncher}, .launcher = launcher};
}

JobRecords cancelled(JobRecords records) {
  records.cancel = kCancel;
  return records;
}

JobRecords ended(JobRecords records, JobState state) {
  records.end = JobEnd{.state = state, .reason = "it is over", .exit_code = 3};
  return records;
}

struct Row {
  const char* name;
  JobRecords records;
  JobState state;
  std::string reason;
};

constexpr const char* kGone = "its launcher (pid 12 on node1) is gone";
constexpr const char* kByAnn = "ann has cancelled it on node2";
constexpr const char* kGoneBefore =
    "its launcher (pid 12 on node1) is gone, and has started nothing";
constexpr const char* kOld =
    "its launcher (pid 12 on node1) has written nothing for 2m, and is not visible from here: ask "
    "on that host";

std::vector<Row> rows() {
  const auto alive = Liveness::kAlive;
  const auto gone = Liveness::kGone;
  const auto hidden = Liveness::kNotVisible;
  const seconds old(120);
  std::vector<Row> rows = {
      {"alive", with_state(alive), JobState::kRunning, "2 of 2 nodes run"},
      {"alive, slow", with_state(alive, old), JobState::kRunning, "2 of 2 nodes run"},
      {"alive, cancelled", cancelled(with_state(alive)), JobState::kCancelling, kByAnn},
      {"gone", with_state(gone), JobState::kFailed, kGone},
      {"gone, cancelled", cancelled(with_state(gone)), JobState::kCancelled, kGone},
      {"not visible", with_state(hidden), JobState::kRunning, "2 of 2 nodes run"},
      {"not visible, 60 s",
       with_state(hidden, seconds(60)),
       JobState::kRunning,
       "2 of 2 nodes run"},
      {"not visible, clock ahead",
       with_state(hidden, -old),
       JobState::kRunning,
       "2 of 2 nodes run"},
      {"not visible, old", with_state(hidden, old), JobState::kUnknown, kOld},
      {"not visible, cancelled", cancelled(with_state(hidden)), JobState::kCancelling, kByAnn},
      {"before the start",
       without_state(alive),
       JobState::kQueued,
       "its launcher has not started yet"},
      {"before, not visible",
       without_state(hidden),
       JobState::kQueued,
       "its launcher has not started yet"},
      {"before, cancelled", cancelled(without_state(alive)), JobState::kCancelling, kByAnn},
      {"before, gone", without_state(gone), JobState::kFailed, kGoneBefore},
      {"before, gone, cancelled",
       cancelled(without_state(gone)),
       JobState::kCancelled,
       kGoneBefore},
  };
  JobRecords engine = without_state(hidden);
  engine.submission.launcher.reset();
  engine.submission.runner = "kubernetes";
  rows.push_back({"of an engine", engine, JobState::kUnknown, "only kubernetes knows its state"});
  JobRecords killed = without_state(gone);
  killed.submission.runner = "slurm";
  rows.push_back(
      {"killed while an engine got it", killed, JobState::kUnknown, "only slurm knows its state"});
  for (const JobRecords& each :
       {with_state(gone), with_state(hidden, old), without_state(gone), engine}) {
    rows.push_back(
        {"ended", ended(each, JobState::kSucceeded), JobState::kSucceeded, "it is over"});
    rows.push_back(
        {"ended", ended(cancelled(each), JobState::kFailed), JobState::kFailed, "it is over"});
  }
  return rows;
}

TEST(JobStatusTest, TheStateFollowsFromTheRecords) {
  for (const Row& row : rows()) {
    const JobStatus status = status_of(row.records, kNow);
    EXPECT_EQ(status.id, "a-1") << row.name;
    EXPECT_EQ(status.state, row.state) << row.name;
    EXPECT_EQ(status.reason, row.reason) << row.name;
    const bool is_lost = row.state == JobState::kFailed && !row.records.end;
    EXPECT_EQ(status.first_failure, is_lost ? row.reason : "") << row.name;
    const auto cause = is_lost ? std::optional(EndCause::kEngine) : std::nullopt;
    EXPECT_EQ(row.state == JobState::kFailed ? status.cause : std::nullopt, cause) << row.name;
    EXPECT_EQ(status.exit_code, row.records.end ? std::optional(3) : std::nullopt) << row.name;
  }
}

TEST(JobStatusTest, NodesOfALostLauncherNoLongerRun) {
  const JobStatus status = status_of(with_state(Liveness::kGone), kNow);
  ASSERT_EQ(status.nodes.size(), 2U);
  EXPECT_EQ(status.nodes[0], kNodes[0]);
  EXPECT_EQ(status.nodes[1].state, JobState::kFailed);
  EXPECT_EQ(status.nodes[1].reason, "it ended with its launcher");
  EXPECT_EQ(status.nodes[1].host, "node3");
}

TEST(JobStatusTest, AllOfAnEndIsInTheStatus) {
  JobRecords records = with_state(Liveness::kGone);
  records.end = JobEnd{.state = JobState::kFailed,
                       .cause = EndCause::kSignal,
                       .first_failure = "rank 3 was killed by SIGSEGV",
                       .failed_rank = 3,
                       .last_lines = {"step 17"},
                       .records = "/jobs/a/why.dump"};
  EXPECT_EQ(end_of(status_of(records, kNow), {}), records.end);
}

TEST(JobStatusTest, NodesAndTheirExitCodesComeFromTheRecords) {
  EXPECT_EQ(status_of(with_state(Liveness::kAlive), kNow).nodes, kNodes);
}

TEST(JobStatusTest, TheAttemptBeforeARequeueHasItsOwnFailure) {
  const JobEnd failed{
      .cause = EndCause::kProgram, .first_failure = "rank 3 ended with exit code 9", .attempts = 2};
  const FailedAttempt expected{.attempt = 1, .failure = "rank 3 ended with exit code 9"};
  EXPECT_EQ(attempt_before_requeue(failed), expected);
  const FailedAttempt requeued{.failure = "Slurm has put the job into its queue again"};
  EXPECT_EQ(attempt_before_requeue({.cause = EndCause::kCancelled, .first_failure = "SIGTERM"}),
            requeued);
  EXPECT_EQ(attempt_before_requeue({}), requeued) << "the launcher was killed";
  EXPECT_FALSE(attempt_before_requeue({.state = JobState::kSucceeded}).has_value());
}

TEST(JobStatusTest, AStateThatHasEndedIsNotCancelled) {
  JobRecords records = cancelled(with_state(Liveness::kAlive));
  records.state->state = JobState::kSucceeded;
  EXPECT_EQ(status_of(records, kNow).state, JobState::kSucceeded);
}

class JobStatusOfFolderTest : public testing::Test {
 protected:
  JobStatusOfFolderTest()
      : folder_(make_job_folder(
            temporary_.path(),
            {.job = {.name = "a", .roles = {{.name = "a", .command = {"true"}}}}})) {}

  /// Says that `launcher` is responsible now.
  void hand_over(const LauncherProcess& launcher) const {
    Submission submission = read_submission(folder_);
    submission.launcher = launcher;
    write(folder_, submission);
  }

  TemporaryFolder temporary_;
  JobFolder folder_;
};

TEST_F(JobStatusOfFolderTest, AJobIsQueuedWhileItIsSubmitted) {
  EXPECT_EQ(status_of(folder_).state, JobState::kQueued);
}

TEST_F(JobStatusOfFolderTest, AKilledLauncherIsNoticed) {
  IdleChild launcher;
  const LauncherProcess record = process_record(launcher.pid());
  hand_over(record);
  EXPECT_EQ(status_of(folder_).state, JobState::kQueued);
  write(folder_,
        LauncherState{
            .launcher = record, .state = JobState::kRunning, .written_at = wall_time_now()});
  EXPECT_EQ(status_of(folder_).state, JobState::kRunning);
  launcher.signal_and_wait(SIGKILL, WEXITED);
  const JobStatus status = status_of(folder_);
  EXPECT_EQ(status.state, JobState::kFailed);
  EXPECT_EQ(status.first_failure, describe(record) + " is gone");
}

TEST_F(JobStatusOfFolderTest, ALauncherThatIsKilledBeforeItsFirstStateIsNoticed) {
  IdleChild launcher;
  hand_over(process_record(launcher.pid()));
  launcher.end();
  EXPECT_EQ(status_of(folder_).state, JobState::kFailed);
}

TEST_F(JobStatusOfFolderTest, ALauncherThatEndsAfterItsRecordIsNeverTakenForAKilledOne) {
  for (int i = 0; i < 20; ++i) {
    const JobFolder folder = make_job_folder(
        temporary_.path(), {.job = {.name = "a", .roles = {{.name = "a", .command = {"true"}}}}});
    const pid_t launcher = ::fork();
    if (launcher == 0) {
      write(folder,
            LauncherState{.launcher = this_process(),
                          .state = JobState::kRunning,
                          .written_at = wall_time_now()});
      write(folder, JobEnd{.state = JobState::kSucceeded, .exit_code = 0});
      ::_exit(0);
    }
    JobState state = JobState::kQueued;
    while (state != JobState::kSucceeded) {
      state = status_of(folder).state;
      ASSERT_NE(state, JobState::kFailed);
    }
    ::waitpid(launcher, nullptr, 0);
  }
}

TEST_F(JobStatusOfFolderTest, AProcessThatHandsOverAndEndsIsNeverTakenForAKilledOne) {
  const LauncherProcess own = this_process();
  for (int i = 0; i < 100; ++i) {
    const pid_t first = ::fork();
    if (first == 0) {
      hand_over(this_process());
      hand_over(own);
      ::_exit(0);
    }
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(first), &info, WEXITED | WNOHANG) == 0 &&
           info.si_pid == 0) {
      ASSERT_EQ(status_of(folder_).state, JobState::kQueued);
    }
  }
}

}  // namespace
}  // namespace peal::launch::jobs
