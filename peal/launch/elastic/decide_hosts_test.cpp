// What the driver of an elastic job does as its hosts become ready, refuse, are lost and come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/launch/elastic/decide.h"
#include "peal/launch/elastic/testing/test_job.h"

namespace peal::launch::elastic {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DecideHostsTest, HostsAreConnectedBeforeWorkersStartThere) {
  TestJob job(two_hosts());
  job.await_hosts();
  EXPECT_THAT(job.act(), ElementsAre("connect a", "connect b"));
  job.ready("b");
  EXPECT_THAT(job.act(), ElementsAre("start b[0]", "start b[1]"));
  job.ask(0);
  job.ask(1);
  EXPECT_THAT(job.act(), ElementsAre());  // host a may still answer
  job.now += kToConnect;
  EXPECT_THAT(job.act(), ElementsAre("round 0 1"));
  job.ready("a");
  EXPECT_THAT(job.act(), ElementsAre("start a[0]", "start a[1]"));
}

TEST(DecideHostsTest, AHostThatRefusesIsTriedAgainAfterAWhile) {
  TestJob job(two_hosts());
  job.await_hosts();
  job.act();
  job.ready("a");
  job.refuse("b", "no key");
  EXPECT_THAT(job.act(), ElementsAre("start a[0]", "start a[1]"));
  job.now += seconds(15);  // 10 s · 2^0 + 0.5 · 10 s
  EXPECT_THAT(job.act(), ElementsAre("connect b"));
}

TEST(DecideHostsTest, IfEveryHostRefusesBeforeAWorkerStartsTheJobEnds) {
  TestJob job(two_hosts());
  job.await_hosts();
  job.act();
  job.refuse("a", "no key");
  EXPECT_THAT(job.act(), ElementsAre());
  job.refuse("b", "no name");
  EXPECT_THAT(job.act(), ElementsAre("end: none of the hosts can be used"));
}

TEST(DecideHostsTest, SpareHostsAreConnectedOnlyToReplace) {
  TestJob job({{"a", 2}, {"b", 2}, {"c", 2}}, {.max_ranks = 4});
  job.await_hosts();
  EXPECT_THAT(job.act(), ElementsAre("connect a", "connect b"));
  job.ready("a");
  job.ready("b");
  job.train();
  job.lose("a");
  EXPECT_THAT(job.act(), ElementsAre("connect c"));
  job.ready("c");
  EXPECT_THAT(job.act(), ElementsAre("start c[0]", "start c[1]"));
  for (const int worker : {2, 3, 4, 5}) job.ask(worker);
  EXPECT_THAT(job.act(), ElementsAre("round 2 3 4 5"));
  job.now += seconds(100);
  EXPECT_THAT(job.act(), ElementsAre());  // host a is a spare now
}

TEST(DecideHostsTest, AHostThatIsSlowToAnswerIsReplacedByASpareOne) {
  TestJob job({{"a", 1}, {"b", 1}}, {.max_ranks = 1});
  job.await_hosts();
  EXPECT_THAT(job.act(), ElementsAre("connect a"));
  job.now += kToConnect;
  EXPECT_THAT(job.act(), ElementsAre("connect b"));
}

TEST(DecideHostsTest, TheLossOfAHostBarsItOnceAndIsNoFailureOfTheProgram) {
  TestJob job(two_hosts());
  job.train();
  job.lose("b");
  EXPECT_EQ(job.state.hosts[1].failures, 1);
  EXPECT_EQ(fruitless_rounds(job.state), 0);
  job.ask(0);
  job.ask(1);
  EXPECT_THAT(job.act(), ElementsAre("round 0 1"));
  job.now += seconds(15);
  EXPECT_THAT(job.act(), ElementsAre("start b[0]", "start b[1]"));
}

TEST(DecideHostsTest, AHostThatIsNoLongerFoundIsLeftAfterItsWorkersHaveEnded) {
  TestJob job(two_hosts());
  job.train();
  job.await_hosts();
  job.find({{"a", 2}});
  EXPECT_THAT(job.act(), ElementsAre("tell 2"));
  for (const int worker : {0, 1, 2, 3}) job.ask(worker);
  EXPECT_THAT(job.act(), ElementsAre("remove 2", "remove 3", "round 0 1"));
  job.fail(2);
  EXPECT_THAT(job.act(), ElementsAre());
  job.fail(3);
  EXPECT_THAT(job.act(), ElementsAre("leave b"));
  job.find(two_hosts());
  EXPECT_THAT(job.act(), ElementsAre("connect b"));
}

TEST(DecideHostsTest, WorkersRunOnNoMoreThanMaxHosts) {
  TestJob job({{"a", 2}, {"b", 2}, {"c", 2}}, {.max_ranks = 4, .max_hosts = 2});
  job.train();
  job.kill(0);
  EXPECT_THAT(job.act(), ElementsAre());  // host a is barred, and its other worker is alive
  job.kill(1);
  EXPECT_THAT(job.act(), ElementsAre("start c[0]", "start c[1]"));
}

TEST(DecideHostsTest, TooFewWorkersAreExplainedByTheHostsThatCannotBeUsed) {
  TestJob job(two_hosts(), {.min_ranks = 3, .timeout = seconds(10)});
  job.await_hosts();
  job.act();
  job.ready("a");
  job.refuse("b", "no key");
  job.act();
  job.ask(0);
  job.ask(1);
  job.now += seconds(10);
  EXPECT_THAT(job.act(), ElementsAre(HasSubstr("the hosts have 4 slots; b: no key")));
}

}  // namespace
}  // namespace peal::launch::elastic
