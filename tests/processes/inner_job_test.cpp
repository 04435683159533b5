// A job inside a rank of `peal run`: the records and the faults of the outer job do not apply to
// it.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/net/testing/reserved_port.h"

#include "tests/support/processes.h"

namespace peal::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A way to start ranks 0 to 2 of a job inside a rank. The ranks do `what` (rank.cpp).
struct InnerJob {
  std::string name;
  std::string (*command)(const std::string& port, const std::string& what);
};

std::string three_ranks(const std::string& variables, const std::string& what) {
  return fmt::format(
      "for r in 0 1 2; do RANK=$r WORLD_SIZE=3 LOCAL_RANK=$r {} {} {} & pids=\"$pids $!\"; done; "
      "for p in $pids; do wait $p || exit 1; done",
      variables,
      PEAL_TEST_RANK,
      what);
}

const std::vector<InnerJob> kInnerJobs = {
    {"Torchrun",
     [](const std::string& port, const std::string& what) {
       return three_ranks("TORCHELASTIC_RUN_ID=inner MASTER_PORT=" + port, what);
     }},
    {"SpawnWithAJobOfItsOwn",
     [](const std::string& port, const std::string& what) {
       return three_ranks("PEAL_JOB=inner PEAL_MASTER_PORT=" + port, what);
     }},
    {"ProcessesThatInheritEverything",
     [](const std::string& port, const std::string& what) {
       return three_ranks("PEAL_MASTER_PORT=" + port, what);
     }},
    {"PealRun", [](const std::string&, const std::string& what) {
       return fmt::format("{} run -n 3 {} {}", PEAL_PROGRAM, PEAL_TEST_RANK, what);
     }}};

class InnerJobTest : public ::testing::TestWithParam<InnerJob> {
 protected:
  Processes::Ended peal(std::vector<std::string> arguments, Processes::Variables more = {}) {
    arguments.insert(arguments.begin(), PEAL_PROGRAM);
    more.insert({"TMPDIR", folder_.path()});
    Processes processes;
    processes.start(arguments, more);
    return processes.wait(Deadline::after(kLimit)).front();
  }
  std::string command(const std::string& what) const {
    return GetParam().command(port_.text(), what);
  }
  std::string with_faults(const std::string& faults) const {
    const std::string path = folder_.path() + "/faults";
    std::ofstream(path) << faults;
    return path;
  }

  const TemporaryFolder folder_;
  const net::ReservedPort port_;
};

INSTANTIATE_TEST_SUITE_P(Jobs,
                         InnerJobTest,
                         ::testing::ValuesIn(kInnerJobs),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(InnerJobTest, TheRecordsOfTheOuterRanksStayUnchanged) {
  // A survivor may learn of the end of rank 1 before it begins the next operation.
  const std::string survivor =
      "(in all_reduce #11 |in no operation; last finished all_reduce #10 )";
  for (const bool is_named : {false, true}) {
    const std::string flights = folder_.path() + "/flights";
    const Processes::Ended ended = peal(
        {"run", "-n", "3", "--log-dir", folder_.path(), PEAL_TEST_RANK, "inner", command("meet")},
        is_named ? Processes::Variables{{"PEAL_FLIGHT_DIR", flights}} : Processes::Variables{});
    EXPECT_EQ(ended.code, 9) << ended.output;
    EXPECT_THAT(ended.output,
                AllOf(HasSubstr("met as rank 0 of 3"), HasSubstr("met as rank 2 of 3")));
    const std::string why =
        peal({"why", is_named ? flights : folder_.path() + "/peal.dump"}).output;
    EXPECT_THAT(why,
                AllOf(StartsWith("The process of rank 1 ended with exit code 9, after all_reduce "
                                 "#10 "),
                      ContainsRegex("\n  rank 0 \\(process [^)]*\\): " + survivor),
                      ContainsRegex("\n  rank 2 \\(process [^)]*\\): " + survivor)));
  }
}

/// Each of the inner ranks begins 20 operations. Rank 1 of the outer job ends before its 15th.
TEST_P(InnerJobTest, AFaultOfAnOuterRankDoesNotApplyToTheInnerJob) {
  const Processes::Ended ended =
      peal({"run",
            "-n",
            "3",
            "--inject",
            with_faults("rank 1 kill at operation 15; rank 2 kill at operation 15"),
            PEAL_TEST_RANK,
            "inner",
            command("count")});
  EXPECT_EQ(ended.code, 9) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("counted"),
                    Not(HasSubstr("ended after")),
                    Not(HasSubstr("warning: failures"))));
}

TEST_P(InnerJobTest, AnInnerJobUsesItsOwnFaultsAndRecords) {
  const std::string inner = folder_.path() + "/inner";
  const Processes::Ended ended = peal(
      {"run",
       "-n",
       "3",
       PEAL_TEST_RANK,
       "inner",
       fmt::format("export PEAL_FLIGHT_DIR={} PEAL_INJECT='rank 1 kill at operation 15'; if ({}); "
                   "then exit 1; fi",
                   inner,
                   command("count"))});
  EXPECT_EQ(ended.code, 9) << ended.output;
  EXPECT_THAT(ended.output, ContainsRegex("ended after 1[34] with peer_lost: "));
  EXPECT_TRUE(std::filesystem::exists(inner + "/rank-1.flight"));
}

/// Like a checkpoint that a process beside each rank writes.
TEST(HelpersTest, AJobOfOneHelperPerRankHasNeitherTheRecordsNorTheFaultsOfTheRank) {
  const TemporaryFolder folder;
  const net::ReservedPort port;
  const std::string faults = folder.path() + "/faults";
  std::ofstream(faults) << "rank 1 kill at operation 15";
  const std::string flights = folder.path() + "/flights";
  Processes processes;
  processes.start({PEAL_PROGRAM,
                   "run",
                   "-n",
                   "3",
                   "--inject",
                   faults,
                   PEAL_TEST_RANK,
                   "helpers",
                   fmt::format("PEAL_MASTER_PORT={} {} count", port.text(), PEAL_TEST_RANK)},
                  {{"PEAL_FLIGHT_DIR", flights}});
  const Processes::Ended ended = processes.wait(Deadline::after(kLimit)).front();
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("[1] counted"), Not(HasSubstr("peer_lost"))));
  Processes why;
  why.start({PEAL_PROGRAM, "why", flights}, {});
  EXPECT_THAT(why.wait(Deadline::after(kLimit)).front().output,
              StartsWith("Nothing went wrong in the last 0 operations of 3 ranks"));
}

}  // namespace
}  // namespace peal::testing
