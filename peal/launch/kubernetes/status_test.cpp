#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/launch/kubernetes/cluster_state.h"

namespace peal::launch::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Pod running() { return {.name = "p", .phase = "Running", .host = "h", .is_placed = true}; }
Pod succeeded() { return {.name = "p", .phase = "Succeeded", .exit_code = 0}; }
Pod failed(int code, const std::string& at, const std::string& word = "Error") {
  return {.name = "p",
          .phase = "Failed",
          .finished = at,
          .host = "h",
          .word = word,
          .is_placed = true,
          .exit_code = code};
}
Pod unschedulable() {
  return {.name = "p", .phase = "Pending", .word = "Unschedulable", .message = "no cores"};
}

RoleJob job_of(const std::string& role, std::vector<std::vector<Pod>> pods, Rank first = 0) {
  const int nodes = static_cast<int>(pods.size());
  return {.name = "j-" + role,
          .role = role,
          .first_rank = first,
          .nodes = nodes,
          .pods = std::move(pods)};
}
RoleJob ended(RoleJob job, const std::string& end, const std::string& reason) {
  job.end = end;
  job.end_reason = reason;
  job.end_message = "of Kubernetes";
  return job;
}

TEST(Status, AJobRunsOnlyWhenAllNodesRun) {
  EXPECT_EQ(status_of("a", {job_of("m", {{running()}, {running()}})}).state, JobState::kRunning);
  const JobStatus part = status_of("a", {job_of("m", {{running()}, {unschedulable()}})});
  EXPECT_EQ(part.state, JobState::kPreparing);
  EXPECT_EQ(part.reason, "1 of 2 nodes run; m-1 waits (Unschedulable: no cores)");
  EXPECT_EQ(part.engine_state, "Unschedulable");
  EXPECT_EQ(status_of("a", {job_of("m", {{unschedulable()}, {}})}).state, JobState::kQueued);
}

TEST(Status, TheEarliestFailureOfAllRolesIsTheCause) {
  const JobStatus status =
      status_of("a",
                {ended(job_of("m", {{failed(1, "2026-01-01T00:00:02Z")}}), "Failed", "X"),
                 ended(job_of("w", {{failed(9, "2026-01-01T00:00:01Z")}}, 1), "Failed", "Y")});
  EXPECT_EQ(status.state, JobState::kFailed);
  EXPECT_EQ(status.exit_code, 9);
  EXPECT_EQ(status.first_failure, "w-0 ended with exit code 9 on h");
  EXPECT_EQ(status.failed_rank, 1);
}

TEST(Status, AFailureSaysThatANodeWithSeveralRanksNeedsPeal) {
  const auto failure = [](int ranks, const std::string& program) {
    Pod pod = failed(128, "", "StartError");
    pod.message = "exec: \"" + program + "\": executable file not found in $PATH";
    RoleJob job = ended(job_of("m", {{pod}}), "Failed", "X");
    job.ranks_per_node = ranks;
    return status_of("a", {job}).first_failure;
  };
  const auto is_explained = HasSubstr("; ranks_per_node needs the program peal in the image");
  EXPECT_THAT(failure(2, "peal"), is_explained);
  EXPECT_THAT(failure(2, "train"), Not(is_explained));
  EXPECT_THAT(failure(1, "peal"), Not(is_explained)) << "a command of the user";
}

TEST(Status, AJobEndsWhenItsIndexedJobsHaveEnded) {
  const auto at = [](RoleJob job, const std::string& end, const std::string& time) {
    job = ended(std::move(job), end, "X");
    job.end_time = time;
    return job;
  };
  const RoleJob master = at(job_of("m", {{succeeded()}}), "Complete", "2026-11-29T04:21:50Z");
  const RoleJob worker = at(job_of("w", {{succeeded()}}, 1), "Complete", "2026-11-29T04:21:52Z");
  EXPECT_EQ(status_of("a", {master, worker}).ended_at, try_parse_time("2026-11-29T04:21:52Z"));
  const RoleJob bad = at(job_of("m", {{failed(1, "")}}), "Failed", "1970-01-01T00:00:07Z");
  EXPECT_EQ(status_of("a", {bad, worker}).ended_at->time_since_epoch(), std::chrono::seconds(7));
  EXPECT_EQ(status_of("a", {master, job_of("w", {{running()}}, 1)}).ended_at, std::nullopt);
  EXPECT_EQ(try_parse_time("yesterday"), std::nullopt);
}

TEST(Status, NodesThatRunAtTheEndOfTheJobAreCancelledWithTheirRole) {
  const RoleJob master =
      ended(job_of("m", {{failed(1, "2026-01-01T00:00:02Z")}, {running()}}), "Failed", "X");
  RoleJob worker = job_of("w", {{running()}, {}}, 2);
  EXPECT_EQ(status_of("a", {master, worker}).nodes[1].state, JobState::kCancelled);
  EXPECT_EQ(status_of("a", {master, worker}).nodes[2].state, JobState::kRunning);
  worker.is_suspended = true;
  EXPECT_EQ(status_of("a", {master, worker}).nodes[2].state, JobState::kCancelled);
  EXPECT_EQ(status_of("a", {master, worker}).nodes[3].state, JobState::kCancelled);
}

TEST(Status, OnlyANodeWithOneRankHasAFailedRank) {
  RoleJob trainer = job_of("t", {{running()}, {failed(1, "2026-01-01T00:00:02Z")}});
  trainer.ranks_per_node = 4;
  trainer.end = "Failed";
  EXPECT_EQ(status_of("a", {trainer}).failed_rank, std::nullopt);
  trainer.pods[1] = {running()};
  const RoleJob judge = job_of("j", {{failed(1, "2026-01-01T00:00:02Z")}}, 2);
  EXPECT_EQ(status_of("a", {trainer, judge}).failed_rank, 8);
}

TEST(Status, AFailureWithoutAPodHasTheTextOfKubernetes) {
  const JobStatus status = status_of("a", {ended(job_of("m", {{}}), "Failed", "X")});
  EXPECT_EQ(status.first_failure, "Kubernetes has ended role m: of Kubernetes");
  EXPECT_FALSE(status.exit_code.has_value());
}

TEST(Status, FailuresOfTheEngineDifferFromExitCodes) {
  Pod evicted{.name = "p", .phase = "Failed", .word = "Evicted", .message = "low on memory"};
  const JobStatus status = status_of("a", {ended(job_of("m", {{evicted}}), "Failed", "X")});
  EXPECT_EQ(status.first_failure, "m-0 failed without an exit code (Evicted: low on memory)");
}

TEST(Status, TheCauseTellsFailuresOfTheEngineFromThoseOfTheProgram) {
  const auto cause = [](const Pod& pod) {
    return status_of("a", {ended(job_of("m", {{pod}}), "Failed", "X")}).cause;
  };
  EXPECT_EQ(cause(failed(3, "t")), EndCause::kProgram);
  EXPECT_EQ(cause(failed(139, "t")), EndCause::kSignal);
  EXPECT_EQ(cause(failed(137, "t", "OOMKilled")), EndCause::kOutOfMemory);
  EXPECT_EQ(cause(failed(128, "t", "StartError")), EndCause::kNotStarted);
  EXPECT_EQ(cause({.phase = "Failed", .word = "Evicted"}), EndCause::kHostLost);
  EXPECT_EQ(cause({.phase = "Failed", .word = "Preempting"}), EndCause::kPreempted);
  EXPECT_EQ(cause({.phase = "Failed", .word = "Strange"}), EndCause::kEngine);
  EXPECT_EQ(status_of("a", {ended(job_of("m", {{}}), "Failed", "X")}).cause, EndCause::kEngine);
  EXPECT_EQ(status_of("a", {ended(job_of("m", {{running()}}), "Failed", "DeadlineExceeded")}).cause,
            EndCause::kTimeLimit);
  EXPECT_EQ(status_of("a", {ended(job_of("m", {{succeeded()}}), "Complete", "")}).cause,
            std::nullopt);
}

TEST(Status, ANodeThatNeverStartedIsNamedWhenTheJobFails) {
  const JobStatus status = status_of(
      "a",
      {ended(
          job_of("m", {{failed(1, "2026-01-01T00:00:02Z")}, {unschedulable()}}), "Failed", "X")});
  EXPECT_EQ(status.reason, "when the job failed, m-1 waits (Unschedulable: no cores)");
}

TEST(Status, AFailedNodeThatIsRestartedDoesNotFailTheJob) {
  const JobStatus waits = status_of("a", {job_of("m", {{failed(1, "2026-01-01T00:00:02Z")}})});
  EXPECT_EQ(waits.state, JobState::kPreparing);
  EXPECT_THAT(waits.reason,
              HasSubstr("m-0 ended with exit code 1, and Kubernetes starts it again"));
  const JobStatus runs =
      status_of("a", {job_of("m", {{failed(1, "2026-01-01T00:00:02Z"), running()}})});
  EXPECT_EQ(runs.state, JobState::kRunning);
  EXPECT_EQ(runs.nodes[0].attempt, 1);
}

TEST(Status, TheRolesThatDecideGiveTheResult) {
  RoleJob worker = job_of("w", {{running()}}, 1);
  worker.decides = false;
  const JobStatus status =
      status_of("a", {ended(job_of("m", {{succeeded()}}), "Complete", ""), worker});
  EXPECT_EQ(status.state, JobState::kSucceeded);
  EXPECT_EQ(status.exit_code, 0);
  worker.decides = true;
  EXPECT_EQ(status_of("a", {ended(job_of("m", {{succeeded()}}), "Complete", ""), worker}).state,
            JobState::kRunning);
}

TEST(Status, ADeletedJobIsCancelling) {
  RoleJob job = job_of("m", {{running()}});
  job.is_deleted = true;
  EXPECT_EQ(status_of("a", {job}).state, JobState::kCancelling);
}

TEST(Status, ASuspendedJobIsQueued) {
  RoleJob job = job_of("m", {{}});
  job.is_suspended = true;
  EXPECT_EQ(status_of("a", {job}).state, JobState::kQueued);
  EXPECT_EQ(status_of("a", {job}).engine_state, "Suspended");
}

TEST(Status, APhaseThatPealDoesNotKnowIsUnknownWithItsWord) {
  const JobStatus status = status_of("a", {job_of("m", {{Pod{.name = "p", .phase = "Lost"}}})});
  EXPECT_EQ(status.state, JobState::kUnknown);
  EXPECT_EQ(status.nodes[0].engine_state, "Lost");
}

TEST(Status, AContainerThatIsRestartedInPlaceIsPreparing) {
  Pod pod = running();
  pod.word = "CrashLoopBackOff";
  pod.restarts = 3;
  const JobStatus status = status_of("a", {job_of("m", {{pod}})});
  EXPECT_EQ(status.nodes[0].state, JobState::kPreparing);
  EXPECT_EQ(status.nodes[0].engine_state, "CrashLoopBackOff");
  EXPECT_EQ(status.nodes[0].attempt, 3);
}

TEST(ClusterState, IsReadFromTheTextOfKubectl) {
  const std::vector<RoleJob> jobs = read_role_jobs(R"({"kind": "List", "items": [
    {"kind": "Job", "metadata": {"name": "a-w", "annotations":
       {"peal.role": "w", "peal.first-rank": "1", "peal.decides-result": "false"}},
     "spec": {"completions": 1}},
    {"kind": "Job", "metadata": {"name": "a-m", "annotations":
       {"peal.role": "m", "peal.first-rank": "0", "peal.decides-result": "true"}},
     "spec": {"completions": 2}, "status": {"conditions": [
       {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded", "message": "!"}]}},
    {"kind": "Pod", "metadata": {"name": "new", "creationTimestamp": "2026-01-01T00:00:02Z",
       "labels": {"batch.kubernetes.io/job-name": "a-m"},
       "annotations": {"batch.kubernetes.io/job-completion-index": "1"}},
     "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
       "reason": "Unschedulable", "message": "no cores"}]}},
    {"kind": "Pod", "metadata": {"name": "old", "creationTimestamp": "2026-01-01T00:00:01Z",
       "labels": {"job-name": "a-m", "batch.kubernetes.io/job-completion-index": "1"}},
     "spec": {"nodeName": "h", "containers": [{"resources": {"limits": {"memory": "1Gi"}}}]},
     "status": {"phase": "Failed", "containerStatuses": [{"restartCount": 0, "state": {"terminated":
       {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-01T00:00:02Z"}}}]}},
    {"kind": "Pod", "metadata": {"name": "stray"}}
  ]})");
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].role, "m");
  EXPECT_EQ(jobs[0].end, "Failed");
  EXPECT_EQ(jobs[0].end_reason, "BackoffLimitExceeded");
  EXPECT_FALSE(jobs[1].decides);
  ASSERT_EQ(jobs[0].pods[1].size(), 2u);
  EXPECT_EQ(jobs[0].pods[1][0].name, "old");
  EXPECT_EQ(jobs[0].pods[1][0].exit_code, 137);
  EXPECT_EQ(jobs[0].pods[1][0].memory_limit, "1Gi");
  EXPECT_EQ(jobs[0].pods[1][1].word, "Unschedulable");
  EXPECT_FALSE(jobs[0].pods[1][1].is_placed);
}

TEST(ClusterState, OtherTextsAreRefused) {
  for (const char* const text : {"", "[]", "Warning: {", "3"}) {
    EXPECT_THROW(read_role_jobs(text), Error) << text;
  }
}

TEST(ClusterState, StrangeJsonIsReadWithoutAnError) {
  for (const char* const text : {R"({"items": 3})",
                                 R"({"items": [3, null, {"kind": "Job"}]})",
                                 R"({"items": [{"kind": "Job", "metadata": 1, "spec": [],
                                     "status": {"conditions": "x"}}]})",
                                 R"({"items": [{"kind": "Job", "spec": {"completions": -5}}]})"}) {
    EXPECT_NO_THROW(read_role_jobs(text)) << text;
  }
}

}  // namespace
}  // namespace peal::launch::kubernetes
