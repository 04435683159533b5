// Elastic jobs of real processes: workers are killed, hosts come and go.
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/elastic/elastic_job.h"
#include "tests/support/seed.h"

namespace peal::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ElasticTest, WorkersOfTwoHostNamesTrainToTheEnd) {
  ElasticJob job;
  job.set_hosts("localhost:2 127.0.0.1:1");
  job.start({"train", "20", "1"});
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("[localhost:0] pid "),
                    HasSubstr("rank 0 of 3, local 0 of 2, cross 0 of 2 on localhost[0], step 0"),
                    HasSubstr("rank 1 of 3, local 1 of 2, cross 0 of 1 on localhost[1], step 0"),
                    HasSubstr("rank 2 of 3, local 0 of 1, cross 1 of 2 on 127.0.0.1[0], step 0"),
                    Not(HasSubstr("peal:"))));
}

TEST(ElasticTest, TheOthersContinueAfterAKillAndTheLostWorkerIsReplaced) {
  ElasticJob job;
  job.set_hosts("localhost:2 127.0.0.1:1");
  job.start({"train", "400", "10"}, {.cooldown = 1});
  ASSERT_TRUE(job.wait_for_round(1, 3));
  const pid_t victim = job.pid_of(1, 0);
  const pid_t heir = job.pid_of(1, 1);
  ::kill(victim, SIGKILL);
  ASSERT_TRUE(job.wait_for_round(2, 2));
  EXPECT_EQ(job.pid_of(2, 0), heir);  // workers that stay keep their order
  ASSERT_TRUE(job.wait_for_round(3, 3));
  EXPECT_EQ(job.pid_of(3, 0), heir);
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("worker localhost[0] (rank 0 of round 1, pid " +
                              std::to_string(victim) + ") was killed by SIGKILL"),
                    HasSubstr("localhost gets no new workers for "),
                    HasSubstr("peal: round 2 begins with 2 workers"),
                    HasSubstr("3 rounds; 1 workers failed on the way, 0 were removed")));
}

TEST(ElasticTest, AnAddedHostJoinsTheTraining) {
  ElasticJob job;
  job.set_hosts("localhost:1");
  job.start({"train", "600", "10"});
  ASSERT_TRUE(job.wait_for_round(1, 1));
  const pid_t first = job.pid_of(1, 0);
  job.set_hosts("localhost:1 127.0.0.1:2");
  ASSERT_TRUE(job.wait_for_round(2, 3));
  EXPECT_EQ(job.pid_of(2, 0), first);
  for (const RoundLine& line : job.rounds()) {
    if (line.round == 2) {
      EXPECT_GT(line.step, 0) << "the state comes from rank 0";
    }
  }
  EXPECT_EQ(job.wait().code, 0);
}

TEST(ElasticTest, WorkersOfARemovedHostAreToldAndLeave) {
  ElasticJob job;
  job.set_hosts("localhost:1 127.0.0.1:1");
  job.start({"train", "400", "10"});
  ASSERT_TRUE(job.wait_for_round(1, 2));
  job.set_hosts("127.0.0.1:1");
  ASSERT_TRUE(job.wait_for_round(2, 1));
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output, HasSubstr("localhost[0] has been removed from elastic job"));
}

TEST(ElasticTest, WithTooFewWorkersTheJobWaitsForHosts) {
  ElasticJob job;
  job.set_hosts("localhost:1 127.0.0.1:1");
  job.start({"train", "300", "10"}, {.min_ranks = 2});
  ASSERT_TRUE(job.wait_for_round(1, 2));
  job.set_hosts("localhost:1");
  ASSERT_TRUE(job.wait_for("has been removed"));
  EXPECT_THAT(job.output(), Not(HasSubstr("round 2")));
  job.set_hosts("localhost:1 127.0.0.2:1");
  ASSERT_TRUE(job.wait_for_round(2, 2));
  EXPECT_EQ(job.wait().code, 0);
}

TEST(ElasticTest, TheJobFailsIfAllWorkersFailAtOnce) {
  ElasticJob job;
  job.set_hosts("localhost:2");
  job.start({"fail", "7"}, {.cooldown = 60});
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 7);
  EXPECT_THAT(ended.output,
              HasSubstr("all workers failed before the first round: localhost[0], localhost[1]"));
}

TEST(ElasticTest, TheJobFailsIfNoWorkerOfARoundIsLeft) {
  ElasticJob job;
  job.set_hosts("localhost:1");
  job.start({"train", "10000", "10"});
  ASSERT_TRUE(job.wait_for_round(1, 1));
  ::kill(job.pid_of(1, 0), SIGSEGV);
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 128 + SIGSEGV);
  EXPECT_THAT(ended.output, HasSubstr("No hosts from previous set remaining, unable to broadcast"));
}

TEST(ElasticTest, TheResetLimitEndsTheJobAndEveryWorkerGetsTheReason) {
  ElasticJob job;
  job.set_hosts("localhost:2 127.0.0.1:1");
  job.start({"train", "10000", "10"}, {.cooldown = 300, .reset_limit = 1});
  ASSERT_TRUE(job.wait_for_round(1, 3));
  ::kill(job.pid_of(1, 2), SIGKILL);
  ASSERT_TRUE(job.wait_for_round(2, 2));
  ::kill(job.pid_of(2, 1), SIGKILL);
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 128 + SIGKILL);
  EXPECT_THAT(ended.output,
              HasSubstr("ended by aborted: Horovod was shutdown because number of resets during "
                        "elastic job exceeded limit: 1"));
}

TEST(ElasticTest, AFailureOfTheFirstDiscoveryIsFatal) {
  ElasticJob job;
  job.start({"train", "1", "1"}, {}, "echo no luck >&2; exit 5");
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("exit code 5"), HasSubstr("no luck")));
}

TEST(ElasticTest, ALaterFailureOfTheDiscoveryChangesNothing) {
  ElasticJob job;
  job.set_hosts("localhost:1");
  job.start({"train", "300", "10"}, {}, job.discovery_script());
  ASSERT_TRUE(job.wait_for_round(1, 1));
  job.set_hosts("a:b:c:d/e f:x");
  ASSERT_TRUE(job.wait_for("the hosts stay as they are"));
  EXPECT_EQ(job.wait().code, 0);
}

TEST(ElasticTest, AHostThatIsAnotherMachineIsRefused) {
  ElasticJob job;
  job.set_hosts("localhost:1 192.0.2.1:1");
  job.start({"train", "1", "1"});
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("unsupported: 192.0.2.1 is not this machine"));
}

TEST(ElasticTest, ASignalToTheLauncherEndsAllWorkers) {
  ElasticJob job;
  job.set_hosts("localhost:2");
  job.start({"train", "10000", "10"});
  ASSERT_TRUE(job.wait_for_round(1, 2));
  job.signal_launcher(SIGTERM);
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 128 + SIGTERM);
  EXPECT_THAT(ended.output, HasSubstr("peal: ended by SIGTERM after"));
}

TEST(ElasticTest, NothingIsLeftIfTheLauncherIsKilled) {
  ElasticJob job;
  job.set_hosts("localhost:2 127.0.0.1:1");
  job.start({"train", "10000", "10"});
  ASSERT_TRUE(job.wait_for_round(1, 3));
  job.signal_launcher(SIGKILL);
  EXPECT_EQ(job.wait().code, -SIGKILL);
}

TEST(ElasticTest, AWorkerThatDoesNotComeToTheNextRoundIsEnded) {
  ElasticJob job;
  job.set_hosts("localhost:2");
  job.start({"train", "400", "10"}, {.timeout = 3, .peal_timeout = "5"});
  ASSERT_TRUE(job.wait_for_round(1, 2));
  ::kill(job.pid_of(1, 1), SIGSTOP);
  ASSERT_TRUE(job.wait_for("did not come to round 2 within 3 s"));
  EXPECT_EQ(job.wait().code, 0);
}

/// One job with random events. Returns how many rounds there were.
void drill(std::mt19937& random) {
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  ElasticJob job;
  const std::vector<std::string> names = {"localhost", "127.0.0.1", "127.0.0.2"};
  std::set<std::string> hosts = {"localhost", "127.0.0.1"};
  const auto publish = [&] {
    std::string text;
    for (const std::string& name : hosts) text += name + ":2 ";
    job.set_hosts(text);
  };
  publish();
  job.start({"train", "400", "5"}, {.cooldown = number(0, 1)});
  ASSERT_TRUE(job.wait_for_round(1, 4));
  std::string story;
  for (int event = number(2, 4); event > 0; --event) {
    std::this_thread::sleep_for(milliseconds(number(0, 600)));
    const auto rounds = job.rounds();
    const int newest = rounds.back().round;
    std::vector<RoundLine> members;
    std::ranges::copy_if(rounds, std::back_inserter(members), [&](const RoundLine& line) {
      return line.round == newest;
    });
    const int what = number(0, 2);
    if (what == 0 && members.size() > 1) {  // not the last one that has the state
      // The oldest worker stays, so that the state is never lost.
      const RoundLine& victim = members[static_cast<std::size_t>(number(0, 1000)) % members.size()];
      if (victim.pid == job.pid_of(1, 0) || victim.where.starts_with("localhost")) continue;
      story += fmt::format("kill {} ({}); ", victim.pid, victim.where);
      ::kill(victim.pid, SIGKILL);
    } else if (what == 1) {
      hosts.insert(names[static_cast<std::size_t>(number(0, 2))]);
      publish();
      story += "add; ";
    } else {
      hosts.erase(names[static_cast<std::size_t>(number(1, 2))]);  // localhost stays
      publish();
      story += "remove; ";
    }
  }
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 0) << story << "\n" << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("done"));
  EXPECT_THAT(ended.output, Not(HasSubstr("wrong sum")));
}

/// PEAL_ELASTIC_DRILLS: how many; 3 otherwise.
TEST(ElasticTest, JobsWithRandomEventsFinishAndLeaveNothing) {
  const char* const given = std::getenv("PEAL_ELASTIC_DRILLS");
  const int drills = given != nullptr ? std::atoi(given) : 3;
  for (int i = 0; i < drills && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("drill {}", i));
    std::mt19937 random(seed() + static_cast<unsigned>(i));
    drill(random);
  }
}

}  // namespace
}  // namespace peal::testing
