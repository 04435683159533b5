#include "peal/launch/elastic/decide.h"

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/launch/elastic/assign_ranks.h"

namespace peal::launch::elastic {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr TimePoint kBegin{std::chrono::hours(1)};

/// A job that a test moves on by events.
class TestJob {
 public:
  explicit TestJob(const std::vector<HostSlots>& hosts, ElasticOptions options = {})
      : options_(std::move(options)) {
    state.begun = now;
    find(hosts);
  }

  void find(const std::vector<HostSlots>& hosts) { hosts_found(state, hosts); }
  void ask(int worker) { worker_asked(state, now, worker); }
  void finish(int worker) { worker_finishes(state, now, worker); }
  void succeed(int worker) { worker_ended(state, now, worker, WorkerEnd::kWell, options_, 0.5); }
  void fail(int worker) { worker_ended(state, now, worker, WorkerEnd::kFailed, options_, 0.5); }
  void kill(int worker) { worker_ended(state, now, worker, WorkerEnd::kKilled, options_, 0.5); }

  /// Acts until there is nothing to do, and returns what was done.
  std::vector<std::string> act() {
    std::vector<std::string> done;
    while (true) {
      const Decision decision = decide(now, state, options_);
      const auto text =
          std::visit([&](const auto& action) { return apply(action); }, decision.action);
      if (text.empty()) return done;
      done.push_back(text);
      if (text.starts_with("end")) return done;
    }
  }

  /// Starts all workers and begins the first round.
  void train() {
    act();
    for (const Worker& worker : std::vector(state.workers)) ask(worker.number);
    act();
    ASSERT_EQ(state.round, 1);
  }

  State state;
  TimePoint now = kBegin;

 private:
  static std::string apply(const Wait&) { return ""; }
  std::string apply(const StartWorker& action) {
    const int number = worker_started(state, now, action.host, action.slot);
    return "start " + name_of(state.workers[static_cast<std::size_t>(number)]);
  }
  std::string apply(const BeginRound& action) {
    std::string text = "round";
    for (const Member& member : action.members) text += " " + std::to_string(member.worker);
    round_began(state, now, action.members);
    return text;
  }
  std::string apply(const TellChanges& action) {
    state.told = action.changes;
    return "tell " + std::to_string(static_cast<int>(action.changes));
  }
  std::string apply(const RemoveWorker& action) {
    worker_leaves(state, now, action.worker);
    return "remove " + std::to_string(action.worker);
  }
  std::string apply(const StopWorker& action) {
    worker_stopped(state, now, action.worker);
    return "stop " + std::to_string(action.worker);
  }
  static std::string apply(const EndWell&) { return "end well"; }
  static std::string apply(const EndBadly& action) { return "end: " + action.why; }

  ElasticOptions options_;
};

std::vector<HostSlots> two_hosts() { return {{"a", 2}, {"b", 2}}; }

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
    EXPECT_THAT(job.act(), ElementsAre(testing::StartsWith("round")));
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

/// The host names and slots of the ranks, in their order.
struct Placed {
  std::string where;
  int local_rank, local_size, cross_rank, cross_size;
  friend bool operator==(const Placed&, const Placed&) = default;
  friend void PrintTo(const Placed& p, std::ostream* out) {
    *out << p.where << " local " << p.local_rank << "/" << p.local_size << " cross " << p.cross_rank
         << "/" << p.cross_size;
  }
};

std::vector<Placed> places(const State& state, const std::vector<int>& workers) {
  std::vector<Placed> placed;
  Rank rank = 0;
  for (const Member& member : assign_ranks(state, workers)) {
    const auto& place = member.place;
    EXPECT_EQ(place.rank, rank++);
    EXPECT_EQ(place.size, std::ssize(workers));
    EXPECT_EQ(place.round, state.round + 1);
    placed.push_back({name_of(state.workers[static_cast<std::size_t>(member.worker)]),
                      place.local_rank,
                      place.local_size,
                      place.cross_rank,
                      place.cross_size});
  }
  return placed;
}

TEST(AssignRanksTest, RanksFollowTheAgeOfTheHostsAndTheirSlots) {
  TestJob job({{"a", 2}, {"b", 1}});
  job.act();
  EXPECT_THAT(
      places(job.state, {0, 1, 2}),
      ElementsAre(
          Placed{"a[0]", 0, 2, 0, 2}, Placed{"a[1]", 1, 2, 0, 1}, Placed{"b[0]", 0, 1, 1, 2}));
}

TEST(AssignRanksTest, ASurvivorIsRank0AlthoughANewWorkerIsOnAnOlderHost) {
  TestJob job({{"a", 1}, {"b", 2}});
  job.train();
  job.fail(0);
  job.fail(1);
  const int on_a = worker_started(job.state, job.now, "a", 0);
  const int on_b = worker_started(job.state, job.now, "b", 0);
  EXPECT_THAT(places(job.state, {2, on_a, on_b}),
              ElementsAre(Placed{"b[1]", 1, 2, 0, 1},  // the local rank counts slots
                          Placed{"b[0]", 0, 2, 0, 2},
                          Placed{"a[0]", 0, 1, 1, 2}));
}

TEST(AssignRanksTest, ALocalRankIsBelowTheLocalSizeWhenASlotIsEmpty) {
  TestJob job({{"a", 3}});
  job.train();
  job.fail(1);
  EXPECT_THAT(places(job.state, {0, 2}),
              ElementsAre(Placed{"a[0]", 0, 2, 0, 1}, Placed{"a[2]", 1, 2, 0, 1}));
}

TEST(HostsFoundTest, AHostThatReturnsIsTheYoungestAndKeepsItsFailures) {
  State state;
  hosts_found(state, two_hosts());
  state.hosts[0].failures = 3;
  hosts_found(state, {{"b", 2}});
  hosts_found(state, {{"a", 4}, {"b", 1}});
  ASSERT_EQ(state.hosts.size(), 2u);
  EXPECT_EQ(state.hosts[0].name, "b");
  EXPECT_EQ(state.hosts[0].slots, 1);
  EXPECT_EQ(state.hosts[1].name, "a");
  EXPECT_EQ(state.hosts[1].slots, 4);
  EXPECT_EQ(state.hosts[1].failures, 3);
}

}  // namespace
}  // namespace peal::launch::elastic
