#include "peal/launch/slurm/slurm_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch::slurm {
namespace {

using jobs::JobRecords;
using jobs::Liveness;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

const jobs::WallTime kNow{std::chrono::hours(1000)};

JobRecords records() { return {.submission = {.id = "mnist", .runner = "slurm"}}; }

JobRecords running() {
  JobRecords given = records();
  given.state = jobs::LauncherState{.state = JobState::kRunning,
                                    .nodes = {{.role = "worker", .state = JobState::kRunning}},
                                    .written_at = kNow};
  return given;
}

JobRecords failed() {
  JobRecords given = running();
  given.end = jobs::JobEnd{.exit_code = 9,
                           .first_failure = "rank 1 ended with exit code 9",
                           .nodes = {{.role = "worker", .state = JobState::kFailed}}};
  return given;
}

JobRecords succeeded() {
  JobRecords given = running();
  given.end = jobs::JobEnd{.state = JobState::kSucceeded,
                           .exit_code = 0,
                           .nodes = {{.role = "worker", .state = JobState::kSucceeded}}};
  return given;
}

JobRecords cancelled(JobRecords given) {
  given.cancel = jobs::CancelRequest{.asked_at = kNow, .host = "login", .user = "ann"};
  return given;
}

/// Slurm has killed the launcher before it could write its end.
JobRecords killed() {
  JobRecords given = running();
  given.launcher = Liveness::kGone;
  return given;
}

JobStatus status(const JobRecords& given, const std::string& state, const SlurmJob& more = {}) {
  SlurmJob job = more;
  job.state = state;
  JobStatus result = status_of(given, job, kNow);
  EXPECT_EQ(result.engine_state, state);
  return result;
}

TEST(SlurmState, ReadsWhatScontrolWritesForEachComponent) {
  EXPECT_THAT(
      read_scontrol(
          "JobId=2 HetJobId=2 HetJobOffset=0 JobName=mnist UserId=root(0) JobState=FAILED "
          "Reason=NonZeroExitCode Requeue=1 Restarts=2 ExitCode=3:0 PreemptTime=None "
          "Comment=JobState=x ExitCode=0:0\n"
          "JobId=3 JobName=mnist JobState=COMPLETING Reason=None Requeue=0 ExitCode=0:15 "
          "PreemptTime=2026-11-29T04:07:31\n"),
      ElementsAre(
          SlurmJob{.name = "mnist",
                   .state = "FAILED",
                   .reason = "NonZeroExitCode",
                   .exit_code = 3,
                   .requeues = 2,
                   .may_requeue = true,
                   .is_component = true},
          SlurmJob{
              .name = "mnist", .state = "COMPLETING", .exit_code = 143, .is_preempted = true}));
  EXPECT_TRUE(read_scontrol("").empty());
}

TEST(SlurmState, AJobWhoseLauncherHasLostItsNodeSaysWhatToDo) {
  JobRecords given = running();
  given.submission.engine_id = "12";
  const JobStatus lost = status(given, "RUNNING", {.lost_host = "node1", .may_requeue = true});
  EXPECT_EQ(lost.state, JobState::kUnknown);
  EXPECT_EQ(lost.nodes.front().state, JobState::kUnknown);
  EXPECT_THAT(lost.reason, HasSubstr("Slurm has lost node1, on which the launcher ran"));
  EXPECT_THAT(lost.reason,
              EndsWith(". Usually an agent on one of these nodes starts the job again. If not, use "
                       "`scontrol requeue 12`, or free the nodes with `peal cancel mnist`"));
  EXPECT_EQ(status(cancelled(given), "RUNNING", {.lost_host = "node1"}).state,
            JobState::kCancelling);
  EXPECT_EQ(status(succeeded(), "RUNNING", {.lost_host = "node1"}).state, JobState::kSucceeded);
}

TEST(SlurmState, OnlyWhatSlurmAllowsIsAdvisedAfterTheLossOfTheLaunchersNode) {
  JobRecords given = running();
  given.submission.engine_id = "12";
  SlurmJob job{.lost_host = "node1", .is_component = true};
  EXPECT_THAT(status(given, "RUNNING", job).reason,
              EndsWith(". Slurm does not start the job again (--no-requeue): free the nodes with "
                       "`peal cancel mnist`"));
  job.may_requeue = true;
  EXPECT_THAT(status(given, "RUNNING", job).reason,
              EndsWith(". To start the job again, use `scontrol requeue 12`, or free the nodes "
                       "with `peal cancel mnist`"));
}

TEST(SlurmState, ReadsWhatSacctWrites) {
  EXPECT_THAT(read_sacct("mnist|CANCELLED by 1000|0:15\n"),
              ElementsAre(SlurmJob{"mnist", "CANCELLED", "", 143}));
}

TEST(SlurmState, AComponentThatSlurmHasEndedDecides) {
  EXPECT_EQ(decisive({{"a", "RUNNING"}, {"a", "NODE_FAIL"}})->state, "NODE_FAIL");
  EXPECT_EQ(decisive({{"a", "COMPLETED"}, {"a", "CANCELLED"}})->state, "COMPLETED");
  EXPECT_FALSE(decisive({}));
}

TEST(SlurmState, AJobThatWaitsHasSlurmsReason) {
  const JobStatus waiting = status(records(), "PENDING", {.reason = "Resources"});
  EXPECT_EQ(waiting.state, JobState::kQueued);
  EXPECT_EQ(waiting.reason, "Slurm's reason: Resources");
  EXPECT_EQ(status(records(), "PENDING", {.reason = "PartitionConfig"}).reason,
            "Slurm's reason: PartitionConfig; the job does not fit and will not start: cancel it, "
            "and submit it with other resources");
  EXPECT_EQ(status(cancelled(records()), "PENDING").state, JobState::kCancelling);
  EXPECT_EQ(status(records(), "CONFIGURING").state, JobState::kPreparing);
}

TEST(SlurmState, AJobThatWaitsAgainHasNoEarlierEnd) {
  EXPECT_EQ(status(failed(), "PENDING", {.reason = "BeginTime"}).state, JobState::kQueued);
}

TEST(SlurmState, ARunningJobIsAsItsLauncherSays) {
  EXPECT_EQ(status(running(), "RUNNING").state, JobState::kRunning);
  EXPECT_EQ(status(running(), "RUNNING").nodes.size(), 1U);
  EXPECT_EQ(status(records(), "RUNNING").state, JobState::kPreparing);
  EXPECT_EQ(status(killed(), "RUNNING").state, JobState::kPreparing) << "of an earlier start";
}

TEST(SlurmState, TheEndOfTheProgramIsTheLaunchersResult) {
  const JobStatus ended = status(failed(), "FAILED", {.exit_code = 9});
  EXPECT_EQ(ended.state, JobState::kFailed);
  EXPECT_EQ(ended.exit_code, 9);
  EXPECT_EQ(ended.first_failure, "rank 1 ended with exit code 9");
}

TEST(SlurmState, AFailureOfTheEngineIsNoFailureOfTheProgram) {
  const JobStatus lost = status(running(), "NODE_FAIL");
  EXPECT_EQ(lost.state, JobState::kFailed);
  EXPECT_EQ(lost.first_failure, "Slurm has lost a node of the job (NODE_FAIL)");
  EXPECT_EQ(lost.cause, EndCause::kHostLost);
  EXPECT_EQ(lost.exit_code, std::nullopt);
  EXPECT_EQ(lost.nodes.front().state, JobState::kFailed);
  EXPECT_EQ(status(failed(), "OUT_OF_MEMORY").first_failure,
            "the job has used more memory than it had asked for (OUT_OF_MEMORY); rank 1 ended with "
            "exit code 9");
}

TEST(SlurmState, AnEndWithSlurmsReasonIsShownAsRecorded) {
  const JobStatus first = status(failed(), "OUT_OF_MEMORY");
  JobRecords kept = failed();
  kept.end = jobs::end_of(first, kNow);
  EXPECT_EQ(status(kept, "OUT_OF_MEMORY").first_failure, first.first_failure);
}

TEST(SlurmState, ATimeLimitCancelsTheJob) {
  const JobStatus late = status(failed(), "TIMEOUT");
  EXPECT_EQ(late.state, JobState::kCancelled);
  EXPECT_EQ(late.exit_code, 124);
  EXPECT_EQ(late.cause, EndCause::kTimeLimit);
  EXPECT_EQ(late.first_failure, "");
}

TEST(SlurmState, ACancelledJobNamesTheUserThatHasAsked) {
  EXPECT_EQ(status(cancelled(running()), "CANCELLED").reason, "ann has cancelled it on login");
  EXPECT_EQ(status(running(), "CANCELLED").reason, "Slurm was asked to end it (CANCELLED)");
  EXPECT_EQ(status(cancelled(records()), "FAILED", {.exit_code = 143}).state, JobState::kCancelled);
}

TEST(SlurmState, NodesThatASignalEndedAreCancelledWithTheJob) {
  for (const char* word : {"CANCELLED", "TIMEOUT", "DEADLINE"}) {
    JobRecords given = failed();
    given.end->nodes.front().exit_code = 143;
    given.end->failed_rank = 0;
    given.end->last_lines = {"Terminated"};
    const JobStatus ended = status(given, word);
    EXPECT_EQ(ended.nodes.front().state, JobState::kCancelled) << word;
    EXPECT_EQ(ended.nodes.front().reason, "it ended with the job") << word;
    EXPECT_FALSE(ended.failed_rank.has_value()) << word;
    EXPECT_TRUE(ended.last_lines.empty()) << word;
    given.end->nodes.front().exit_code = 9;
    EXPECT_EQ(status(given, word).nodes.front().state, JobState::kFailed) << "by itself: " << word;
  }
}

TEST(SlurmState, NodesOfAKilledLauncherEndAsTheJobDoes) {
  EXPECT_EQ(status(killed(), "CANCELLED").nodes.front().state, JobState::kCancelled);
  EXPECT_EQ(status(killed(), "TIMEOUT").nodes.front().state, JobState::kCancelled);
  const JobStatus well = status(killed(), "COMPLETED", {.exit_code = 0});
  EXPECT_EQ(well.nodes.front().state, JobState::kSucceeded);
  EXPECT_FALSE(well.cause.has_value());
  EXPECT_EQ(status(killed(), "NODE_FAIL").first_failure,
            "Slurm has lost a node of the job (NODE_FAIL)");
}

TEST(SlurmState, ALauncherWithoutAResultIsAFailure) {
  const JobStatus silent = status(records(), "FAILED", {.exit_code = 127});
  EXPECT_EQ(silent.state, JobState::kFailed);
  EXPECT_EQ(silent.exit_code, 127);
  EXPECT_EQ(silent.cause, EndCause::kEngine);
  EXPECT_THAT(silent.first_failure, HasSubstr("exit code 127 and has left no result"));
  EXPECT_EQ(status(records(), "COMPLETED", {.exit_code = 0}).state, JobState::kSucceeded);
}

TEST(SlurmState, AnUnknownWordIsShownAsItIs) {
  EXPECT_EQ(status(running(), "SUSPENDED").state, JobState::kUnknown);
  EXPECT_EQ(status(running(), "NEW_WORD").state, JobState::kUnknown);
}

TEST(SlurmState, OfAForgottenJobTheRecordsTellTheEnd) {
  EXPECT_EQ(status_of(failed(), std::nullopt, kNow).exit_code, 9);
  EXPECT_EQ(status_of(running(), std::nullopt, kNow).state, JobState::kUnknown);
  EXPECT_EQ(status_of(cancelled(records()), std::nullopt, kNow).state, JobState::kCancelled);
}

TEST(SlurmState, APreemptedJobHasNotEndedBeforeSlurmSaysWhetherItStartsAgain) {
  JobRecords given = failed();
  given.end->cause = EndCause::kPreempted;
  EXPECT_EQ(status(given, "COMPLETING").state, JobState::kPreparing);
  EXPECT_EQ(status(given, "PENDING").state, JobState::kQueued);
  EXPECT_EQ(status(given, "PREEMPTED").state, JobState::kFailed);
  EXPECT_EQ(status(running(), "PREEMPTED").cause, EndCause::kPreempted) << "no time for a record";
  given.end->cause = EndCause::kHostLost;
  EXPECT_EQ(status(given, "COMPLETING").state, JobState::kFailed);
}

TEST(SlurmState, APreemptedJobWithoutGraceHasNotSucceededWhenItsRanksEndWell) {
  const SlurmJob preempted{.is_preempted = true};
  EXPECT_EQ(status(succeeded(), "COMPLETING").state, JobState::kSucceeded) << "its usual end";
  EXPECT_EQ(status(succeeded(), "COMPLETING", preempted).state, JobState::kPreparing);
  EXPECT_EQ(status(succeeded(), "COMPLETING", preempted).reason, "Slurm preempts it");
  EXPECT_EQ(status(succeeded(), "PREEMPTED", preempted).state, JobState::kFailed);
  EXPECT_EQ(status(succeeded(), "COMPLETED", preempted).state, JobState::kSucceeded);
  EXPECT_EQ(status(killed(), "COMPLETING", preempted).state, JobState::kPreparing) << "no end";
}

TEST(SlurmState, AJobThatWaitsAgainNamesTheAttemptThatFailed) {
  const FailedAttempt expected{.attempt = 0, .failure = "rank 1 ended with exit code 9"};
  EXPECT_EQ(status(failed(), "PENDING", {.requeues = 1}).failed_attempt, expected);
  EXPECT_FALSE(status(failed(), "PENDING").failed_attempt.has_value());
  JobRecords given = succeeded();
  given.failed_attempt = expected;
  EXPECT_EQ(status(given, "PENDING", {.requeues = 1}).failed_attempt, expected) << "an earlier one";
}

TEST(SlurmState, AnEndBeforeARequeueIsNotTheEndOfTheJob) {
  const SlurmJob again{.requeues = 1};
  JobRecords earlier = succeeded();
  earlier.launcher = Liveness::kGone;
  EXPECT_EQ(status(earlier, "COMPLETING", again).state, JobState::kPreparing);
  EXPECT_EQ(status(earlier, "PENDING", again).state, JobState::kQueued);
  EXPECT_EQ(status(earlier, "RUNNING", again).state, JobState::kPreparing) << "not removed yet";
  EXPECT_FALSE(end_of_this_start(earlier, again).has_value());
  earlier.end->requeues = 1;
  EXPECT_EQ(status(earlier, "COMPLETING", again).state, JobState::kSucceeded);
}

TEST(SlurmState, AJobThatIsBeingSubmittedIsUnknownToSlurm) {
  JobRecords submitting = records();
  submitting.submission.launcher = jobs::LauncherProcess{.pid = 7};
  submitting.launcher = Liveness::kAlive;
  EXPECT_EQ(status_of(submitting, std::nullopt, kNow).state, JobState::kQueued);
  submitting.launcher = Liveness::kGone;
  EXPECT_EQ(status_of(submitting, std::nullopt, kNow).state, JobState::kUnknown);
}

TEST(SlurmState, OnlyAJobThatSlurmNoLongerChangesHasAFinalState) {
  for (const char* state : {"COMPLETED", "FAILED", "PREEMPTED", "CANCELLED"}) {
    EXPECT_TRUE(is_final(state)) << state;
  }
  for (const char* state : {"COMPLETING", "RUNNING", "PENDING", ""}) {
    EXPECT_FALSE(is_final(state)) << state;
  }
}

TEST(SlurmState, AJobWhoseLauncherSlurmHasEndedMayStartAgain) {
  JobRecords given = failed();
  given.end->cause = EndCause::kCancelled;
  EXPECT_EQ(status(given, "COMPLETING").state, JobState::kPreparing) << "scontrol requeue";
  EXPECT_EQ(status(cancelled(given), "COMPLETING").state, JobState::kFailed) << "as recorded";
  given.end->cause = EndCause::kProgram;
  EXPECT_EQ(status(given, "COMPLETING").state, JobState::kFailed);
}

}  // namespace
}  // namespace peal::launch::slurm
