#include "peal/launch/elastic/decide.h"

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/launch/elastic/testing/test_job.h"

namespace peal::launch::elastic {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DecideTest, WorkersStartOnAllSlotsAndTheFirstRoundWaitsForAllOfThem) {
  TestJob job(two_hosts());
  EXPECT_THAT(job.act(), ElementsAre("start a[0]", "start a[1]", "start b[0]", "start b[1]"));
  for (const int worker : {3, 0, 1}) job.ask(worker);
  EXPECT_THAT(job.act(), ElementsAre());
  job.ask(2);
  EXPECT_THAT(job.act(), ElementsAre("round 0 1 2 3"));
}

TEST(DecideTest, NoMoreThanMaxRanksStart) {
  TestJob job(two_hosts(), {.max_ranks = 3});
  EXPECT_THAT(job.act(), ElementsAre("start a[0]", "start a[1]", "start b[0]"));
}

TEST(DecideTest, TheFirstRoundBeginsWithoutAWorkerThatDoesNotComeInTime) {
  TestJob job(two_hosts(), {.min_ranks = 2, .timeout = seconds(10)});
  job.act();
  for (const int worker : {0, 1, 2}) job.ask(worker);
  job.now += seconds(10);
  EXPECT_THAT(job.act(), ElementsAre("round 0 1 2"));
}

TEST(DecideTest, TooFewSlotsEndTheJobAtTheTimeout) {
  TestJob job({{"a", 1}}, {.min_ranks = 2, .timeout = seconds(10)});
  job.act();
  job.ask(0);
  job.now += milliseconds(9'999);
  EXPECT_THAT(job.act(), ElementsAre());
  job.now += milliseconds(1);
  EXPECT_THAT(job.act(),
              ElementsAre(HasSubstr(
                  "only 1 worker became ready within 10 s (--elastic-timeout), but the job "
                  "needs at least 2 (--min-np); the hosts have 1 slot")));
}

TEST(DecideTest, AfterAFailureTheOthersContinueAndTheHostIsBarredForAWhile) {
  TestJob job(two_hosts());
  job.train();
  job.fail(0);
  EXPECT_THAT(job.act(), ElementsAre());
  for (const int worker : {1, 2, 3}) job.ask(worker);
  EXPECT_THAT(job.act(), ElementsAre("round 1 2 3"));
  job.now += seconds(14);  // 10 s · 2^0 + 0.5 · 10 s
  EXPECT_THAT(job.act(), ElementsAre());
  job.now += seconds(1);
  EXPECT_THAT(job.act(), ElementsAre("start a[0]"));
}

TEST(DecideTest, EachFailureDoublesThePauseUpToTheLimit) {
  State state;
  hosts_found(state, {{"a", 9}});
  std::vector<seconds> pauses;
  for (int i = 0; i < 7; ++i) {
    const int worker = worker_started(state, kBegin, "a", i);
    worker_ended(state, kBegin, worker, WorkerEnd::kFailed, {}, 0.5);
    pauses.push_back(std::chrono::duration_cast<seconds>(state.hosts[0].barred_until - kBegin));
  }
  EXPECT_THAT(pauses,
              ElementsAre(seconds(15),
                          seconds(25),
                          seconds(45),
                          seconds(85),
                          seconds(165),
                          seconds(300),
                          seconds(300)));
}

TEST(DecideTest, AnAddedWorkerIsAnnouncedWhenItIsReady) {
  TestJob job({{"a", 2}});
  job.train();
  job.find(two_hosts());
  EXPECT_THAT(job.act(), ElementsAre("start b[0]", "start b[1]"));
  job.ask(2);
  EXPECT_THAT(job.act(), ElementsAre());  // the other may come in time for the same reset
  job.ask(3);
  EXPECT_THAT(job.act(), ElementsAre("tell 1"));
  job.ask(0);
  EXPECT_THAT(job.act(), ElementsAre());
  job.ask(1);
  EXPECT_THAT(job.act(), ElementsAre("round 0 1 2 3"));
}

TEST(DecideTest, AWorkerThatIsSlowToStartDoesNotHoldUpTheOthers) {
  TestJob job({{"a", 1}});
  job.train();
  job.find({{"a", 1}, {"b", 2}});
  job.act();
  job.ask(1);
  job.now += kToJoin;
  EXPECT_THAT(job.act(), ElementsAre("tell 1"));
}

TEST(DecideTest, AWorkerWhoseHostVanishesIsRemovedWhenItAsks) {
  TestJob job(two_hosts());
  job.train();
  job.find({{"b", 2}});
  EXPECT_THAT(job.act(), ElementsAre("tell 2"));
  job.ask(0);
  EXPECT_THAT(job.act(), ElementsAre("remove 0"));
  job.ask(2);
  job.ask(3);
  EXPECT_THAT(job.act(), ElementsAre("round 2 3"));  // worker 1 need not come
  EXPECT_EQ(job.state.workers[1].phase, Phase::kLeaving);
  job.fail(0);  // with the exception that says that it was removed
  EXPECT_EQ(job.state.workers[0].phase, Phase::kLeft);
  EXPECT_THAT(job.act(), ElementsAre());
  job.now += kToLeave;
  EXPECT_THAT(job.act(), ElementsAre("stop 1"));
  EXPECT_THAT(job.act(), ElementsAre());
}

TEST(DecideTest, ARemovalAndAnAdditionAreBothTold) {
  TestJob job(two_hosts());
  job.train();
  job.find({{"a", 1}, {"b", 2}, {"c", 1}});
  EXPECT_THAT(job.act(), ElementsAre("start c[0]", "tell 2"));
  job.ask(4);
  EXPECT_THAT(job.act(), ElementsAre("tell 3"));
}

TEST(DecideTest, WithTooFewSurvivorsTheJobWaitsForHostsAndThenRenegotiates) {
  TestJob job(two_hosts(), {.min_ranks = 4});
  job.train();
  job.find({{"a", 2}});
  job.act();
  for (const int worker : {0, 1, 2, 3}) job.ask(worker);
  EXPECT_THAT(job.act(), ElementsAre("remove 2", "remove 3"));
  job.fail(2);
  job.fail(3);
  job.now += seconds(300);
  EXPECT_THAT(job.act(), ElementsAre());
  job.find(two_hosts());
  EXPECT_THAT(job.act(), ElementsAre("start b[0]", "start b[1]"));
  job.ask(4);
  job.ask(5);
  EXPECT_THAT(job.act(), ElementsAre("round 0 1 4 5"));
}

TEST(DecideTest, WithoutSurvivorsTheStateIsLostAndTheJobEnds) {
  TestJob job(two_hosts());
  job.train();
  for (const int worker : {0, 1, 2, 3}) job.fail(worker);
  EXPECT_THAT(
      job.act(),
      ElementsAre(HasSubstr("No hosts from previous set remaining, unable to broadcast state.")));
}

TEST(DecideTest, NewWorkersCannotContinueARoundWithoutSurvivors) {
  TestJob job({{"a", 1}});
  job.train();
  job.find({{"a", 1}, {"b", 1}});
  job.act();
  job.ask(1);
  job.act();
  job.fail(0);
  EXPECT_THAT(job.act(), ElementsAre(HasSubstr("No hosts from previous set remaining")));
}

TEST(DecideTest, AWorkerThatJoinedAndDidNotReceiveTheStateCannotContinueAlone) {
  for (const bool has_state : {false, true}) {
    TestJob job({{"a", 1}, {"b", 1}}, {.max_ranks = 2});
    job.train();
    job.fail(1);
    job.ask(0);
    job.act();
    job.now += seconds(60);
    EXPECT_THAT(job.act(), ElementsAre("start b[0]"));
    job.ask(2);
    job.ask(0);
    EXPECT_THAT(job.act(), ElementsAre("round 0 2"));
    if (has_state) worker_synchronized(job.state, 2);
    job.fail(0);
    job.ask(2);
    EXPECT_THAT(job.act(),
                ElementsAre(has_state ? HasSubstr("round 2")
                                      : HasSubstr("No hosts from previous set remaining")));
  }
}

TEST(DecideTest, AWorkerThatJoinedMayStillSayThatItHasTheState) {
  TestJob job({{"a", 1}});
  job.train();
  job.find({{"a", 1}, {"b", 1}});
  job.act();
  job.ask(1);
  job.act();
  job.ask(0);
  EXPECT_THAT(job.act(), ElementsAre("round 0 1"));
  job.fail(0);  // before the driver reads that worker 1 has the state
  EXPECT_THAT(job.act(), ElementsAre());
  worker_synchronized(job.state, 1);
  job.ask(1);
  EXPECT_THAT(job.act(), ElementsAre("round 1"));
}

TEST(DecideTest, IfAllWorkersFailBeforeTheFirstRoundTheJobEnds) {
  TestJob job(two_hosts());
  job.act();
  for (const int worker : {0, 1, 2}) job.fail(worker);
  EXPECT_THAT(job.act(), ElementsAre());
  job.fail(3);
  EXPECT_THAT(job.act(), ElementsAre("end: all workers failed: a[0], a[1], b[0], b[1]"));
}

TEST(DecideTest, TheFirstSuccessEndsTheJobWellOnceTheOthersHaveEnded) {
  TestJob job(two_hosts());
  job.train();
  job.succeed(0);
  job.find({{"a", 2}, {"b", 2}, {"c", 2}});
  EXPECT_THAT(job.act(), ElementsAre());  // no worker starts on c
  job.fail(1);
  job.succeed(2);
  EXPECT_THAT(job.act(), ElementsAre());
  job.succeed(3);
  EXPECT_THAT(job.act(), ElementsAre("end well"));
}

TEST(DecideTest, AnEarlyExitCode0IsTheCauseIfTheOthersFailAfterIt) {
  for (const bool in_next_round : {false, true}) {
    TestJob job(two_hosts());
    job.train();
    job.succeed(1);
    job.now += seconds(1);
    for (const int worker : {0, 2, 3}) {
      if (in_next_round) job.ask(worker);
    }
    EXPECT_EQ(job.act().empty(), !in_next_round);
    for (const int worker : {0, 2, 3}) job.fail(worker);
    EXPECT_THAT(job.act(),
                ElementsAre("end: worker a[1] ended with exit code 0 while others still trained; "
                            "after that failed: a[0], b[0], b[1]"));
  }
}

TEST(DecideTest, AnAnnouncedEndIsASuccessAlthoughOthersFailAfterIt) {
  TestJob job(two_hosts());
  job.train();
  job.finish(1);
  job.succeed(1);
  job.now += seconds(1);
  for (const int worker : {0, 2, 3}) job.fail(worker);
  EXPECT_THAT(job.act(), ElementsAre("end well"));
}

/// The worker fails, and the others ask for the next round.
void fail_in_round(TestJob& job, int worker) {
  job.fail(worker);
  for (const Worker& each : std::vector(job.state.workers)) {
    if (each.phase == Phase::kTraining) job.ask(each.number);
  }
}

TEST(DecideTest, RoundsThatFailBeforeACommitEndTheJob) {
  TestJob job(two_hosts());
  job.train();
  fail_in_round(job, 0);
  EXPECT_THAT(job.act(), ElementsAre("round 1 2 3"));
  fail_in_round(job, 1);
  EXPECT_THAT(job.act(), ElementsAre("round 2 3"));
  job.fail(2);  // and worker 3 has not asked yet
  EXPECT_THAT(job.act(),
              ElementsAre("end: workers failed in 3 rounds in a row before a commit, so "
                          "the program seems to have a bug; in round 3 failed: b[0]"));
}

TEST(DecideTest, ACommitBeginsTheCountOfFailedRoundsAgain) {
  TestJob job({{"a", 5}});
  job.train();
  fail_in_round(job, 0);
  job.act();
  worker_progressed(job.state, 1);
  fail_in_round(job, 1);
  EXPECT_THAT(job.act(), ElementsAre("round 2 3 4"));
  fail_in_round(job, 2);
  EXPECT_THAT(job.act(), ElementsAre("round 3 4"));
  fail_in_round(job, 3);
  EXPECT_THAT(job.act(), ElementsAre("round 4"));
}

TEST(DecideTest, WorkersThatAreKilledFromOutsideDoNotCountAsABug) {
  TestJob job({{"a", 5}});
  job.train();
  for (const int worker : {0, 1, 2, 3}) {
    job.kill(worker);
    for (int other = worker + 1; other < 5; ++other) job.ask(other);
    EXPECT_THAT(job.act(), ElementsAre(::testing::StartsWith("round")));
  }
}

TEST(DecideTest, ACrashIsAFailureOfTheWorkerAndAKillIsNot) {
  EXPECT_EQ(end_of(0), WorkerEnd::kWell);
  EXPECT_EQ(end_of(1 << 8), WorkerEnd::kFailed);
  EXPECT_EQ(end_of(SIGSEGV), WorkerEnd::kFailed);
  EXPECT_EQ(end_of(SIGABRT), WorkerEnd::kFailed);
  EXPECT_EQ(end_of(SIGKILL), WorkerEnd::kKilled);
  EXPECT_EQ(end_of(SIGTERM), WorkerEnd::kKilled);
}

TEST(DecideTest, WorkersThatStillAskAfterASuccessGetARound) {
  TestJob job(two_hosts(), {.min_ranks = 4});
  job.train();
  job.succeed(0);
  job.fail(1);
  job.ask(2);
  EXPECT_THAT(job.act(), ElementsAre());
  job.ask(3);
  EXPECT_THAT(job.act(), ElementsAre("round 2 3"));
}

TEST(DecideTest, AWorkerThatSaysThatItFinishesStopsGrowth) {
  TestJob job({{"a", 2}});
  job.train();
  job.find(two_hosts());
  job.act();
  job.finish(0);
  job.ask(2);
  EXPECT_THAT(job.act(), ElementsAre("remove 2"));
  job.succeed(1);
  job.succeed(0);
  job.fail(2);
  EXPECT_THAT(job.act(), ElementsAre("stop 3"));
  job.fail(3);
  EXPECT_THAT(job.act(), ElementsAre("end well"));
}

TEST(DecideTest, TheResetLimitCountsRoundsAfterTheFirst) {
  TestJob job(two_hosts(), {.reset_limit = 1});
  job.train();
  for (const int worker : {0, 1, 2, 3}) job.ask(worker);
  EXPECT_THAT(job.act(), ElementsAre("round 0 1 2 3"));
  for (const int worker : {0, 1, 2, 3}) job.ask(worker);
  EXPECT_THAT(job.act(),
              ElementsAre("end: Horovod was shutdown because number of resets during elastic job "
                          "exceeded limit: 1"));
}

TEST(DecideTest, AtTheResetLimitAJobWithASuccessEndsWell) {
  TestJob job(two_hosts(), {.reset_limit = 0});
  job.train();
  job.succeed(0);
  for (const int worker : {1, 2, 3}) job.ask(worker);
  EXPECT_THAT(job.act(), ElementsAre("remove 1", "remove 2", "remove 3"));
  for (const int worker : {1, 2, 3}) job.fail(worker);
  EXPECT_THAT(job.act(), ElementsAre("end well"));
}

TEST(DecideTest, AWorkerThatDoesNotComeToTheNextRoundIsStopped) {
  TestJob job({{"a", 2}}, {.timeout = seconds(10)});
  job.train();
  job.ask(0);
  job.now += milliseconds(9'999);
  EXPECT_THAT(job.act(), ElementsAre());
  job.now += milliseconds(1);
  EXPECT_THAT(job.act(), ElementsAre("stop 1", "round 0"));
}

}  // namespace
}  // namespace peal::launch::elastic
