// Failures that a fault plan injects into the jobs of `peal run`: the job ends as with a real
// failure, or survives it.
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/init/init.h"

#include "tests/support/processes.h"

namespace peal::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs two ranks with these faults under `peal run --inject`. The ranks do `what` (rank.cpp).
Processes::Ended rehearse(const std::string& faults,
                          const std::string& what,
                          const Processes::Variables& variables = {}) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/faults";
  std::ofstream(path) << faults;
  Processes processes;
  processes.start({PEAL_PROGRAM, "run", "-n", "2", "--inject", path, PEAL_TEST_RANK, what},
                  variables);
  Processes::Ended ended = processes.wait(Deadline::after(kLimit)).front();
  EXPECT_TRUE(ended.in_time) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("peal: injects: " + faults + "\n"));
  return ended;
}

/// The same over TCP.
Processes::Ended rehearse_over_tcp(const std::string& faults,
                                   const std::string& what,
                                   Processes::Variables variables = {}) {
  variables["PEAL_TRANSPORT"] = "tcp";
  return rehearse(faults, what, variables);
}

class InjectedProcessTest : public ::testing::TestWithParam<std::string> {};

TEST_P(InjectedProcessTest, AKilledRankIsLost) {
  const auto ended =
      rehearse("rank 1 kill at operation 10", "count", {{"PEAL_TRANSPORT", GetParam()}});
  EXPECT_EQ(ended.code, 128 + SIGKILL) << ended.output;
  // Rank 0 may notice the death before it has left operation 9, which rank 1 has completed.
  EXPECT_THAT(ended.output,
              AllOf(ContainsRegex("\\[0\\] ended after [89] with peer_lost: rank 1"),
                    HasSubstr("rank 1 (pid "),
                    HasSubstr("was killed by SIGKILL")));
}

TEST_P(InjectedProcessTest, AFrozenRankCausesATimeout) {
  Processes::Variables variables = {{"PEAL_TRANSPORT", GetParam()}, {"PEAL_TEST_TIMEOUT", "10000"}};
  variables.merge(without_leak_check());
  const auto ended = rehearse("rank 1 freeze at operation 10", "count", variables);
  EXPECT_NE(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("[0] ended after 9 with timeout: "), HasSubstr("is stopped")));
}

TEST_P(InjectedProcessTest, ARankThatIsFrozenForAShortTimeDisturbsNoRank) {
  Processes::Variables variables = {{"PEAL_TRANSPORT", GetParam()}};
  variables.merge(without_leak_check());
  const auto ended = rehearse("rank 1 freeze at operation 10 for 300 ms", "count", variables);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("[0] counted"), HasSubstr("[1] counted")));
}

INSTANTIATE_TEST_SUITE_P(Transports,
                         InjectedProcessTest,
                         ::testing::Values("shm", "tcp"),
                         [](const auto& instance) { return instance.param; });

TEST(InjectedLinkTest, ACutLinkLosesThePeer) {
  const auto ended = rehearse_over_tcp("link 0-1 data cut after 4k", "count");
  EXPECT_EQ(ended.code, 3) << ended.output;
  EXPECT_THAT(
      ended.output,
      AllOf(HasSubstr("[0] ended after"), HasSubstr("[1] ended after"), HasSubstr("peer_lost")));
}

TEST(InjectedLinkTest, DamageIsDetectedWithChecksAndNeverAWrongSum) {
  for (const auto& variable : {"PEAL_INTEGRITY=crc", "PEAL_TLS=on"}) {
    const std::string text = variable;
    const auto equals = text.find('=');
    const auto ended = rehearse_over_tcp("link 0>1 data corrupt after 100k",
                                         "count",
                                         {{text.substr(0, equals), text.substr(equals + 1)}});
    EXPECT_EQ(ended.code, 3) << ended.output;
    EXPECT_THAT(ended.output,
                AllOf(HasSubstr("with peer_lost: rank "),
                      ContainsRegex(
                          "rank 1 of the group world lost rank 0 \\(pid [0-9]+ on host [^)]+\\): "),
                      HasSubstr("damaged"),
                      HasSubstr("why: The connection between ranks 0 and 1 broke"),
                      Not(HasSubstr("wrong sum")),
                      Not(HasSubstr("counted"))));
  }
}

TEST(InjectedLinkTest, DamageIsNotDetectedWithoutChecks) {
  // The damage hits the numbers of a large all_reduce.
  const auto ended = rehearse_over_tcp("link 0>1 data corrupt after 100k", "count");
  EXPECT_EQ(ended.code, 6) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("wrong sum"));
}

TEST(InjectedLinkTest, ALinkThatDropsEverythingCausesATimeout) {
  const auto ended =
      rehearse_over_tcp("link 0>1 data drop after 100k", "count", {{"PEAL_TEST_TIMEOUT", "10000"}});
  EXPECT_EQ(ended.code, 3) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("with timeout: "));
  EXPECT_THAT(ended.output, ContainsRegex("peal: why: .* check the network between them"));
}

TEST(InjectedLinkTest, ASlowOrDelayedLinkIsSurvived) {
  for (const std::string faults : {"link 0-1 delay 5 ms", "link 0>1 slow 4m/s"}) {
    const auto ended = rehearse_over_tcp(faults, "count");
    EXPECT_EQ(ended.code, 0) << ended.output;
    EXPECT_THAT(ended.output, AllOf(HasSubstr("[0] counted"), HasSubstr("[1] counted")));
  }
}

TEST(InjectedFaultTest, AFaultThatIsNeverReachedIsReportedByItsRankAtTheEnd) {
  const auto ended = rehearse("rank 1 kill at operation 500", "count");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("[1] warning: injected faults that were never reached: "
                              "rank 1 kill at operation 500; rank 1 has begun 20 "
                              "operations in all\n"),
                    Not(HasSubstr("[0] warning: injected faults"))));
}

TEST(InjectedLinkTest, TheLibraryWarnsOfInjectedFaults) {
  const auto ended = rehearse_over_tcp("link 0>1 mail delay 1 ms", "count");
  EXPECT_THAT(ended.output,
              HasSubstr("warning: failures are injected into this job: link 0>1 mail delay 1 ms"));
}

/// A job of one rank whose own program injects the faults.
void rehearse_alone(const std::string& faults) {
  const TemporaryFolder folder;
  InitOptions options;
  options.init_method = "file://" + folder.path() + "/meeting";
  options.rank = 0;
  options.world_size = 1;
  options.faults = parse_faults(faults);
  const ProcessGroupPtr group = init_process_group(options);
  group->barrier();
  group->barrier();
  ::_exit(0);
}

TEST(InjectedDeathTest, AProgramCanInjectFaultsItself) {
  EXPECT_EXIT(rehearse_alone("rank 0 kill at operation 2"), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(rehearse_alone("rank 0 kill at operation 3"), ::testing::ExitedWithCode(0), "");
}

TEST(InjectedLinkTest, AFaultOfARankThatDoesNotExistIsRejectedByTheRanksToo) {
  Processes processes;
  processes.start({PEAL_TEST_RANK, "count"},
                  {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"PEAL_INJECT", "link 0-1 delay 1 s"}});
  const auto ended = processes.wait(Deadline::after(kLimit)).front();
  EXPECT_EQ(ended.code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("there is no rank 1 in a job of 1"));
}

}  // namespace
}  // namespace peal::testing
