#include "peal/launch/attempt_loop.h"

#include <signal.h>

#include <deque>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::launch {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

const AttemptRules kFastRules{.least_ranks = 2,
                              .most_ranks = 2,
                              .restarts = {.most = 2, .first_pause = milliseconds(1)},
                              .host_timeout = milliseconds(50),
                              .ask_slurm_every = milliseconds(1)};

/// A job whose attempts end as the test says.
class FakeJob final : public AttemptedJob {
 public:
  explicit FakeJob(std::deque<AttemptEnd> ends) : ends_(std::move(ends)) {}

  AttemptEnd run(const BeginAttempt& attempt, int number) override {
    numbers.push_back(number);
    hosts.push_back(attempt.hosts.empty() ? "" : attempt.hosts.front().name);
    if (signal_of_run != 0) ::raise(signal_of_run);
    const AttemptEnd end = ends_.front();
    if (ends_.size() > 1) ends_.pop_front();
    return end;
  }
  void tell(const std::string& sentence) override { told.push_back(sentence); }
  int look() override {
    if (signal_of_look != 0) ::raise(signal_of_look);
    return code_of_look;
  }
  /// True for the first `times_preempted` calls.
  bool is_preempted() override {
    if (slurm_is_silent) throw Error(ErrorKind::kResource, "scontrol is silent");
    return asked++ < times_preempted;
  }

  std::vector<int> numbers{};
  std::vector<std::string> hosts{};
  std::vector<std::string> told{};
  int code_of_look = 0;
  int signal_of_look = 0;
  int signal_of_run = 0;  // when an attempt has ended, and no longer reads signals
  bool slurm_is_silent = false;
  int times_preempted = 0;
  int asked = 0;

 private:
  std::deque<AttemptEnd> ends_;
};

AttemptEnd failure(int code) { return {.exit_code = code, .next = AfterAttempt::kRestart}; }

int run_here(FakeJob& job) {
  SignalReader signals;
  return run_attempts({}, kFastRules, slots_of, job, signals);
}

TEST(AttemptLoopTest, AJobThatEndsWellRunsOnce) {
  FakeJob job({AttemptEnd{.exit_code = 0}});
  EXPECT_EQ(run_here(job), 0);
  EXPECT_THAT(job.numbers, ElementsAre(0));
  EXPECT_THAT(job.told, ElementsAre());
}

TEST(AttemptLoopTest, AFailedJobStartsAgainUntilItsLimit) {
  FakeJob job({failure(7), failure(8), failure(9), failure(10)});
  EXPECT_EQ(run_here(job), 9);
  EXPECT_THAT(job.numbers, ElementsAre(0, 1, 2));
  EXPECT_THAT(job.told, ElementsAre("restart 1 of 2", "restart 2 of 2"));
}

TEST(AttemptLoopTest, ARestartMaySucceed) {
  FakeJob job({failure(7), {.exit_code = 0}});
  EXPECT_EQ(run_here(job), 0);
}

TEST(AttemptLoopTest, AnotherHostReplacesARefusedOneWithoutARestart) {
  FakeJob job({{.exit_code = 1, .next = AfterAttempt::kRetry, .lost = {{"a", "refused"}}},
               {.exit_code = 0}});
  const AttemptState hosts{.hosts = {{.host = {"a", 2}}, {.host = {"b", 2}}}};
  SignalReader signals;
  EXPECT_EQ(run_attempts(hosts, kFastRules, slots_of, job, signals), 0);
  EXPECT_THAT(job.hosts, ElementsAre("a", "b"));
  EXPECT_THAT(job.numbers, ElementsAre(0, 0));
}

TEST(AttemptLoopTest, AJobWithoutUsableHostsGivesUpAndSaysWhy) {
  FakeJob job({{.exit_code = 1, .next = AfterAttempt::kRetry, .lost = {{"a", "refused"}}}});
  const AttemptState hosts{.hosts = {{.host = {"a", 2}}}, .waiting_since = Clock::now()};
  SignalReader signals;
  EXPECT_EQ(run_attempts(hosts, kFastRules, slots_of, job, signals), 1);
  EXPECT_THAT(job.told, ElementsAre(HasSubstr("the job ends: there is room for 0 ranks")));
  EXPECT_THAT(job.told.front(), HasSubstr("a: refused"));
}

TEST(AttemptLoopTest, AJobThatWaitsForALostHostSaysSo) {
  FakeJob job({AttemptEnd{.exit_code = 0}});
  job.code_of_look = 143;
  AttemptRules rules = kFastRules;
  rules.host_timeout = std::chrono::hours(2);
  const AttemptState state{.hosts = {{.host = {"a", 2},
                                      .failures = 1,
                                      .barred_until = Clock::now() + std::chrono::hours(1),
                                      .why = "silent"}},
                           .waiting_since = Clock::now()};
  SignalReader signals;
  EXPECT_EQ(run_attempts(state, rules, slots_of, job, signals), 143);
  EXPECT_THAT(job.told,
              ElementsAre("the job waits for hosts: there is room for 0 ranks, and it needs 2: a: "
                          "silent"));
}

TEST(AttemptLoopTest, AJobThatFindsNoHostsAnyMoreKeepsTheExitCodeOfItsRanks) {
  FakeJob job({{.exit_code = 137, .next = AfterAttempt::kRestart},
               {.exit_code = 1, .next = AfterAttempt::kRetry, .lost = {{"a", "refused"}}}});
  SignalReader signals;
  EXPECT_EQ(run_attempts({.hosts = {{.host = {"a", 2}}}}, kFastRules, slots_of, job, signals), 137);
  EXPECT_THAT(job.numbers, ElementsAre(0, 1));
  EXPECT_THAT(job.told, testing::Contains(HasSubstr("the job ends: there is room for 0 ranks")));
}

TEST(AttemptLoopTest, ARequestEndsTheJobDuringAPause) {
  FakeJob job({failure(7)});
  job.code_of_look = 143;
  EXPECT_EQ(run_here(job), 143);
  EXPECT_THAT(job.numbers, ElementsAre(0));
}

constexpr const char* kInterrupted = "the job ends: the launcher got SIGINT while no rank ran";

TEST(AttemptLoopTest, ASignalBetweenTwoAttemptsEndsTheJobAndIsTheReason) {
  FakeJob retry({{.exit_code = 1, .next = AfterAttempt::kRetry}});
  retry.signal_of_run = SIGINT;
  EXPECT_EQ(run_here(retry), 128 + SIGINT);
  EXPECT_THAT(retry.numbers, ElementsAre(0));
  EXPECT_THAT(retry.told, ElementsAre(kInterrupted));
  FakeJob restart({failure(7)});
  restart.signal_of_run = SIGINT;
  EXPECT_EQ(run_here(restart), 128 + SIGINT);
  EXPECT_THAT(restart.numbers, ElementsAre(0));
  EXPECT_THAT(restart.told, ElementsAre("restart 1 of 2", kInterrupted));
}

TEST(AttemptLoopTest, ASignalAfterTheLastAttemptChangesNothing) {
  FakeJob job({AttemptEnd{.exit_code = 7}});
  job.signal_of_run = SIGINT;
  SignalReader signals;
  EXPECT_EQ(run_attempts({}, kFastRules, slots_of, job, signals), 7);
  EXPECT_EQ(signals.take_end(), SIGINT) << "it stays pending";
}

TEST(AttemptLoopTest, CtrlCInThePauseBeforeARestartIsTheReason) {
  FakeJob job({failure(7)});
  job.signal_of_look = SIGINT;
  SignalReader signals;
  AttemptRules rules = kFastRules;
  rules.restarts.first_pause = rules.restarts.longest_pause = std::chrono::hours(1);
  EXPECT_EQ(run_attempts({}, rules, slots_of, job, signals), 128 + SIGINT);
  EXPECT_THAT(job.told, ElementsAre("restart 1 of 2", kInterrupted));
}

TEST(AttemptLoopTest, ASignalThatEndsAnAttemptBeforeItsRanksIsTheReason) {
  FakeJob job({AttemptEnd{.signal = SIGINT}});
  EXPECT_EQ(run_here(job), 128 + SIGINT);
  EXPECT_THAT(job.told, ElementsAre(kInterrupted));
}

TEST(AttemptLoopTest, ASilentSlurmIsReportedAndDoesNotPreempt) {
  FakeJob job({{.exit_code = 7, .next = AfterAttempt::kRestart, .may_be_preempted = true}, {}});
  job.slurm_is_silent = true;
  EXPECT_EQ(run_here(job), 0);
  EXPECT_THAT(job.told,
              ElementsAre(HasSubstr("scontrol is silent; so the job counts as not preempted"),
                          "restart 1 of 2"));
}

TEST(AttemptLoopTest, APreemptedJobWaitsUntilSlurmNoLongerPreemptsIt) {
  for (const AfterAttempt next :
       {AfterAttempt::kEnd, AfterAttempt::kRestart, AfterAttempt::kRetry}) {
    FakeJob job({{.exit_code = 0, .next = next, .may_be_preempted = true}});
    job.times_preempted = 3;
    EXPECT_EQ(run_here(job), 128 + SIGTERM);
    EXPECT_EQ(job.asked, 4);
    EXPECT_THAT(job.numbers, ElementsAre(0)) << "it does not start again";
    EXPECT_THAT(job.told, ElementsAre(HasSubstr("Slurm preempts the job")));
  }
}

TEST(AttemptLoopTest, ARequestOrASignalEndsTheWaitOfAPreemptedJob) {
  FakeJob job({{.exit_code = 0, .may_be_preempted = true}});
  job.times_preempted = 1;
  job.code_of_look = 124;
  EXPECT_EQ(run_here(job), 124);
  job.asked = 0;
  job.code_of_look = 0;
  job.signal_of_look = SIGINT;
  EXPECT_EQ(run_here(job), 128 + SIGINT);
}

TEST(AttemptLoopTest, AJobThatSlurmDoesNotPreemptStartsAgain) {
  FakeJob job({{.exit_code = 7, .next = AfterAttempt::kRestart, .may_be_preempted = true},
               {.exit_code = 0}});
  EXPECT_EQ(run_here(job), 0);
  EXPECT_THAT(job.numbers, ElementsAre(0, 1));
  EXPECT_EQ(job.asked, 1) << "only after the attempt that Slurm may have ended";
}

TEST(AttemptLoopTest, AJobThatIsPreemptedDuringAPauseWaits) {
  FakeJob job({failure(7)});
  job.signal_of_look = SIGTERM;
  EXPECT_EQ(run_here(job), 128 + SIGTERM);
  EXPECT_EQ(job.asked, 1) << "Slurm does not preempt it";
  job.asked = 0;
  job.times_preempted = 1;
  EXPECT_EQ(run_here(job), 128 + SIGTERM);
  EXPECT_THAT(job.told, testing::Contains(HasSubstr("Slurm preempts the job")));
}

TEST(AttemptLoopTest, SlurmMayHaveSentTheSigtermThatTheLauncherGot) {
  for (int LaunchReport::*signal : {&LaunchReport::signal, &LaunchReport::late_signal}) {
    LaunchReport report;
    report.ends.push_back({.rank = 0, .status = 3 << 8});
    report.*signal = SIGTERM;
    EXPECT_TRUE(end_of(report).may_be_preempted);
    report.*signal = SIGINT;
    EXPECT_FALSE(end_of(report).may_be_preempted);
  }
}

TEST(AttemptLoopTest, AJobThatHasSucceededDoesNotWaitForThePreemption) {
  LaunchReport report;
  report.ends.push_back({.rank = 0, .status = 0});
  report.late_signal = SIGTERM;
  EXPECT_FALSE(end_of(report).may_be_preempted);
}

TEST(AttemptLoopTest, OnlyFailuresOfTheProgramMayBeFollowedByARestart) {
  const auto next_after = [](const std::function<void(LaunchReport&)>& change) {
    LaunchReport report;
    report.ends.push_back({.rank = 0, .status = 3 << 8});
    change(report);
    return end_of(report).next;
  };
  EXPECT_EQ(next_after([](auto&) {}), AfterAttempt::kRestart);
  EXPECT_EQ(next_after([](auto& report) { report.signal = SIGTERM; }), AfterAttempt::kEnd);
  EXPECT_EQ(next_after([](auto& report) { report.late_signal = SIGTERM; }), AfterAttempt::kEnd);
  EXPECT_EQ(next_after([](auto& report) { report.was_cancelled = true; }), AfterAttempt::kEnd);
  EXPECT_EQ(next_after([](auto& report) { report.time_limit = Timeout(1); }), AfterAttempt::kEnd);
  EXPECT_EQ(next_after([](auto& report) { report.output_closed = true; }), AfterAttempt::kEnd);
  EXPECT_EQ(next_after([](auto& report) { report.start_failure = StartFailure(); }),
            AfterAttempt::kEnd);
  EXPECT_EQ(
      next_after([](auto& report) { report.ends[0].container_start = ContainerStart::kFailed; }),
      AfterAttempt::kEnd);
  EXPECT_EQ(next_after([](auto& report) {
              report.ends[0].container_start = ContainerStart::kInterrupted;
            }),
            AfterAttempt::kRestart);
}

TEST(AttemptLoopTest, ACancelledLaunchHasTheCodeOfSigterm) {
  LaunchReport report;
  report.was_cancelled = true;
  report.ends.push_back({.rank = 0, .status = SIGKILL, .ended_by = EndedBy::kKill});
  EXPECT_EQ(end_of(report).exit_code, 128 + SIGTERM);
}

TEST(AttemptLoopTest, LostHostsAreNamedWithTheirReason) {
  LaunchReport report;
  report.ends.push_back({.rank = 0, .status = SIGKILL, .host = "a", .lost = "silent"});
  report.ends.push_back({.rank = 1, .status = 0, .host = "b"});
  EXPECT_THAT(end_of(report).lost, ElementsAre(testing::Pair("a", "silent")));
}

}  // namespace
}  // namespace peal::launch
