// Elastic jobs of real processes: workers are killed, hosts come and go.
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <span>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/observe/dump.h"
#include "peal/observe/why.h"

#include "tests/elastic/elastic_job.h"
#include "tests/support/number_after.h"
#include "tests/support/seed.h"

namespace peal::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Whether a process with this number runs a worker. The number may belong to another process now.
bool belongs_to_job(pid_t pid) {
  std::error_code gone;
  const auto program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), gone);
  return !gone && program == std::filesystem::canonical(PEAL_ELASTIC_WORKER_PROGRAM);
}

pid_t parent_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return static_cast<pid_t>(number_after(text, "PPid:\t"));
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(ElasticTest, WorkersOfTwoHostNamesTrainToTheEnd) {
  ElasticJob job;
  job.set_hosts("localhost:2 127.0.0.1:1");
  job.finish();
  job.start({"train", "1"});
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("localhost[0] pid "),
                    HasSubstr("rank 0 of 3, local 0 of 2, cross 0 of 2 on localhost[0], step 0"),
                    HasSubstr("rank 1 of 3, local 1 of 2, cross 0 of 1 on localhost[1], step 0"),
                    HasSubstr("rank 2 of 3, local 0 of 1, cross 1 of 2 on 127.0.0.1[0], step 0"),
                    Not(HasSubstr("peal:"))));
}

TEST(ElasticTest, TheOthersContinueAfterAKillAndTheLostWorkerIsReplaced) {
  ElasticJob job;
  job.set_hosts("localhost:2 127.0.0.1:1");
  job.start({"train", "10"}, {.cooldown = 1});
  ASSERT_TRUE(job.wait_for_round(1, 3));
  const pid_t victim = job.pid_of(1, 0);
  const pid_t heir = job.pid_of(1, 1);
  ::kill(victim, SIGKILL);
  ASSERT_TRUE(job.wait_for_round(2, 2));
  EXPECT_EQ(job.pid_of(2, 0), heir);  // workers that stay keep their order
  ASSERT_TRUE(job.wait_for_round(3, 3));
  EXPECT_EQ(job.pid_of(3, 0), heir);
  job.finish();
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("worker localhost[0] (rank 0 of round 1, pid " +
                              std::to_string(victim) + ") was killed by SIGKILL"),
                    HasSubstr("localhost gets no new workers for "),
                    HasSubstr("peal: round 2 begins with 2 workers"),
                    HasSubstr("3 rounds; 1 worker failed on the way, and 0 workers were removed")));
}

TEST(ElasticTest, ARankThatEndsBeforeItMeetsDoesNotHoldUpTheOthers) {
  for (const char* const rank : {"0", "2"}) {
    ElasticJob job;
    job.set_hosts("localhost:3");
    job.start({"train", "10", "1", rank}, {.cooldown = 300});
    ASSERT_TRUE(job.wait_for_round(2, 2));
    job.finish();
    const auto ended = job.wait();
    EXPECT_EQ(ended.code, 0);
    EXPECT_THAT(ended.output, HasSubstr("before the group of round 1 was made"));
  }
}

TEST(ElasticTest, AnAddedHostJoinsTheTraining) {
  ElasticJob job;
  job.set_hosts("localhost:1");
  job.start({"train", "10"});
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
  job.finish();
  EXPECT_EQ(job.wait().code, 0);
}

TEST(ElasticTest, WorkersOfARemovedHostAreToldAndLeave) {
  ElasticJob job;
  job.set_hosts("localhost:1 127.0.0.1:1");
  job.start({"train", "10"});
  ASSERT_TRUE(job.wait_for_round(1, 2));
  job.set_hosts("127.0.0.1:1");
  ASSERT_TRUE(job.wait_for_round(2, 1));
  job.finish();
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output, HasSubstr("localhost[0] has been removed from elastic job"));
}

TEST(ElasticTest, WithTooFewWorkersTheJobWaitsForHosts) {
  ElasticJob job;
  job.set_hosts("localhost:1 127.0.0.1:1");
  job.start({"train", "10"}, {.min_ranks = 2});
  ASSERT_TRUE(job.wait_for_round(1, 2));
  job.set_hosts("localhost:1");
  ASSERT_TRUE(job.wait_for("has been removed"));
  EXPECT_THAT(job.output(), Not(HasSubstr("round 2")));
  job.set_hosts("localhost:1 127.0.0.2:1");
  ASSERT_TRUE(job.wait_for_round(2, 2));
  job.finish();
  EXPECT_EQ(job.wait().code, 0);
}

TEST(ElasticTest, TheJobFailsIfAllWorkersFailAtOnce) {
  ElasticJob job;
  job.set_hosts("localhost:2");
  job.start({"fail", "7"}, {.cooldown = 60});
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 7);
  EXPECT_THAT(ended.output,
              HasSubstr("before the first round: all workers failed: localhost[0], localhost[1]"));
  EXPECT_EQ(count(ended.output, "ended with exit code 7"), 2) << ended.output;
}

TEST(ElasticTest, AProgramThatFailsInEachRoundIsNotStartedForEver) {
  ElasticJob job;
  job.set_hosts("localhost:2 127.0.0.1:3");
  job.start({"bug", "9"}, {.min_ranks = 2});
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 9);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("peal: round 3 begins"),
                    Not(HasSubstr("peal: round 4 begins")),
                    HasSubstr("workers failed in 3 rounds in a row before a commit"),
                    HasSubstr("  | round 3 has a bug"),
                    HasSubstr("peal: why: The process of rank 0 ended with exit code 9"),
                    HasSubstr("peal: see peal why ")));
  EXPECT_EQ(count(ended.output, "ended with exit code 9 after"), 3) << ended.output;
}

TEST(ElasticTest, AWorkerThatEndsTooEarlyIsNamedFirst) {
  ElasticJob job;
  job.set_hosts("localhost:3");
  job.start({"leave"}, {.cooldown = 300});
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 3);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("in round 1: worker localhost[1] ended with exit code 0 while others "
                              "still trained; after that failed: localhost[0], localhost[2]"),
                    HasSubstr("peal: why: The process of rank 1 ended")));
}

TEST(ElasticTest, EachRoundKeepsItsRecordsInItsFolder) {
  const TemporaryFolder folder;
  const std::string records = folder.path() + "/records";
  ElasticJob job;
  job.set_hosts("localhost:2");
  job.start({"train", "10"}, {.cooldown = 300, .records = records});
  ASSERT_TRUE(job.wait_for_round(1, 2));
  ::kill(job.pid_of(1, 1), SIGKILL);
  ASSERT_TRUE(job.wait_for_round(2, 1));
  job.finish();
  EXPECT_EQ(job.wait().code, 0);
  const std::vector<std::string> of_both = {records + "/round-1", records + "/round-2"};
  const observe::Dump first = observe::read_dumps(std::span(of_both).first(1));
  EXPECT_EQ(first.flights.size(), 2u);
  EXPECT_THAT(observe::diagnose(first.flights, first.ends).sentence,
              HasSubstr("The process of rank 1 was killed by SIGKILL"));
  EXPECT_EQ(observe::read_dumps(std::span(of_both).last(1)).flights.size(), 1u);
}

TEST(ElasticTest, TheJobFailsIfNoWorkerOfARoundIsLeft) {
  ElasticJob job;
  job.set_hosts("localhost:1");
  job.start({"train", "10"});
  ASSERT_TRUE(job.wait_for_round(1, 1));
  ::kill(job.pid_of(1, 0), SIGKILL);
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 128 + SIGKILL);
  EXPECT_THAT(ended.output, HasSubstr("No hosts from previous set remaining, unable to broadcast"));
}

TEST(ElasticTest, TheResetLimitEndsTheJobAndEveryWorkerGetsTheReason) {
  ElasticJob job;
  job.set_hosts("localhost:2 127.0.0.1:1");
  job.start({"train", "10"}, {.cooldown = 300, .reset_limit = 1});
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
  job.start({"train", "1"}, {}, "echo no luck >&2; exit 5");
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("exit code 5"), HasSubstr("no luck")));
}

TEST(ElasticTest, ALaterFailureOfTheDiscoveryChangesNothing) {
  ElasticJob job;
  job.set_hosts("localhost:1");
  job.start({"train", "10"}, {}, job.discovery_script());
  ASSERT_TRUE(job.wait_for_round(1, 1));
  job.set_hosts("a:b:c:d/e f:x");
  ASSERT_TRUE(job.wait_for("the hosts stay as they are"));
  job.finish();
  EXPECT_EQ(job.wait().code, 0);
}

TEST(ElasticTest, AHostThatCannotBeReachedIsNamedOnceAndTheOthersTrain) {
  ElasticJob job;
  job.set_hosts("localhost:1 peal-other.invalid:1");
  job.start({"train", "10"}, {.cooldown = 1});
  ASSERT_TRUE(job.wait_for_round(1, 1));
  job.finish();
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(count(ended.output, "peal: host peal-other.invalid cannot be used: "), 1);
}

TEST(ElasticTest, AJobWithoutAUsableHostEndsAtOnce) {
  ElasticJob job;
  job.set_hosts("peal-other.invalid:1");
  job.start({"train", "10"});
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("before the first round: none of the hosts can be used"));
  EXPECT_THAT(ended.output, HasSubstr("peal: host peal-other.invalid cannot be used: "));
  EXPECT_THAT(ended.output, Not(HasSubstr("it is tried again")));
}

TEST(ElasticTest, ASignalToTheLauncherEndsAllWorkers) {
  ElasticJob job;
  job.set_hosts("localhost:2");
  job.start({"train", "10"});
  ASSERT_TRUE(job.wait_for_round(1, 2));
  job.signal_launcher(SIGTERM);
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 128 + SIGTERM);
  EXPECT_THAT(ended.output, HasSubstr("peal: ended by SIGTERM after"));
}

TEST(ElasticTest, NothingIsLeftIfTheLauncherIsKilled) {
  ElasticJob job;
  job.set_hosts("localhost:2 127.0.0.1:1");
  job.start({"train", "10"});
  ASSERT_TRUE(job.wait_for_round(1, 3));
  job.signal_launcher(SIGKILL);
  EXPECT_EQ(job.wait().code, -SIGKILL);
}

TEST(ElasticTest, NothingIsLeftIfTheGuardIsKilled) {
  ElasticJob job;
  job.set_hosts("localhost:2");
  job.start({"train", "10"});
  ASSERT_TRUE(job.wait_for_round(1, 2));
  ::kill(parent_of(job.pid_of(1, 0)), SIGKILL);
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 128 + SIGKILL);
  EXPECT_THAT(ended.output, HasSubstr("the process that guards the workers was killed"));
}

TEST(ElasticTest, AWorkerThatDoesNotComeToTheNextRoundIsEnded) {
  ElasticJob job;
  job.set_hosts("localhost:2");
  job.start({"train", "10"}, {.timeout = 3, .peal_timeout = "5"});
  ASSERT_TRUE(job.wait_for_round(1, 2));
  ::kill(job.pid_of(1, 1), SIGSTOP);
  ASSERT_TRUE(job.wait_for("did not come to round 2 within 3 s"));
  job.finish();
  EXPECT_EQ(job.wait().code, 0);
}

/// The steps at the beginnings of rounds never go back: no round starts from nothing.
void expect_progress(ElasticJob& job) {
  std::map<int, std::int64_t> first_step;  // by round
  for (const RoundLine& line : job.rounds()) {
    const auto [known, is_new] = first_step.try_emplace(line.round, line.step);
    EXPECT_TRUE(is_new || known->second == line.step) << "the ranks of a round have one state";
  }
  std::int64_t step = 0;
  for (const auto& [round, first] : first_step) {
    EXPECT_GE(first, step) << "round " << round;
    step = first;
  }
}

/// One job with random events.
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
  job.start({"train", "5"}, {.cooldown = number(0, 1)});
  ASSERT_TRUE(job.wait_for_round(1, 4));
  std::string story;
  for (int event = number(3, 6); event > 0; --event) {
    // Often at once, while workers still meet after the last event.
    std::this_thread::sleep_for(milliseconds(number(0, 1) * number(0, 1500)));
    const auto rounds = job.rounds();
    switch (number(0, 2)) {
      case 0: {
        const auto& victim =
            rounds[static_cast<std::size_t>(number(std::max(0, static_cast<int>(rounds.size()) - 4),
                                                   static_cast<int>(rounds.size()) - 1))];
        story += fmt::format("kill {} ({}); ", victim.pid, victim.where);
        if (belongs_to_job(victim.pid)) ::kill(victim.pid, SIGKILL);
        break;
      }
      case 1:
        hosts.insert(names[static_cast<std::size_t>(number(0, 2))]);
        publish();
        story += "add; ";
        break;
      case 2:
        if (hosts.size() > 1) hosts.erase(names[static_cast<std::size_t>(number(0, 2))]);
        publish();
        story += "remove; ";
        break;
    }
  }
  job.finish();
  const auto ended = job.wait();
  // Only if all workers with the state were lost, the job cannot finish.
  const bool is_lost = ended.output.find("No hosts from previous set") != std::string::npos;
  EXPECT_TRUE(is_lost || ended.code == 0) << story << "\n" << ended.output;
  EXPECT_TRUE(is_lost || ended.output.find("done") != std::string::npos) << story;
  EXPECT_THAT(ended.output, Not(HasSubstr("wrong sum")));
  expect_progress(job);
  if (is_lost) std::cout << "the state was lost: " << story << std::endl;
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
