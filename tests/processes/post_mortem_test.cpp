// The report of `peal run` on a failed job, and the files that it leaves for `peal why`, with real
// processes.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/processes.h"

namespace peal::testing {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class PostMortemTest : public ::testing::Test {
 protected:
  /// `peal ARGUMENTS`, with a separate folder for temporary files.
  Processes::Ended peal(std::vector<std::string> arguments, Processes::Variables more = {}) {
    arguments.insert(arguments.begin(), PEAL_PROGRAM);
    more.insert({"TMPDIR", temporary_.path()});
    Processes processes;
    processes.start(arguments, more);
    return processes.wait(Deadline::after(kLimit)).front();
  }
  Processes::Ended run(const std::string& what, const Processes::Variables& more = {}) {
    return peal({"run", "-n", "3", PEAL_TEST_RANK, what}, more);
  }

  /// The dump; there must be no other file.
  std::string dump() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(temporary_.path())) {
      if (!entry.is_directory()) files.push_back(entry.path());
    }
    EXPECT_EQ(files.size(), 1u);
    return files.size() == 1 ? files.front() : "";
  }
  /// The answer of `peal why`. Its first sentence must be in the report too.
  std::string why(const Processes::Ended& ended) {
    EXPECT_THAT(ended.output, HasSubstr(fmt::format("peal: see peal why {}\n", dump())));
    const std::string answer = peal({"why", dump()}).output;
    EXPECT_THAT(ended.output, HasSubstr("peal: why: " + answer.substr(0, answer.find('\n') + 1)));
    return answer;
  }
  bool has_nothing() const { return fs::is_empty(temporary_.path()); }

  const TemporaryFolder temporary_;
};

TEST_F(PostMortemTest, AfterSuccessNothingIsReportedAndNothingIsLeft) {
  const Processes::Ended ended = run("meet");
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output, Not(HasSubstr("peal:")));
  EXPECT_TRUE(has_nothing());
}

TEST_F(PostMortemTest, AKilledRankIsTheCauseAndItsPeersSayHowItEnded) {
  const Processes::Ended ended = run("kill");
  EXPECT_EQ(ended.code, 128 + SIGKILL);
  EXPECT_THAT(ended.output,
              ContainsRegex("\\[0\\] peer_lost: rank 1 \\(pid [0-9]+ on [^)]+\\) was lost: it was "
                            "killed by SIGKILL; rank [02] of the group world was in all_reduce "
                            "#1[01] "));
  EXPECT_THAT(why(ended),
              StartsWith("The process of rank 1 was killed by SIGKILL, after all_reduce #10 "));
}

TEST_F(PostMortemTest, AnExitInTheMiddleIsTheCause) {
  const Processes::Ended ended = run("exit");
  EXPECT_EQ(ended.code, 9);
  EXPECT_THAT(ended.output, HasSubstr(") was lost: it ended with exit code 9; rank "));
  EXPECT_THAT(why(ended), StartsWith("The process of rank 1 ended with exit code 9, after "));
}

TEST_F(PostMortemTest, ARankThatThrowsIsTheCause) {
  const Processes::Ended ended = run("throw");
  EXPECT_EQ(ended.code, 7);
  EXPECT_THAT(why(ended),
              AllOf(StartsWith("Rank 1 "), HasSubstr("its process ended with exit code 7")));
}

TEST_F(PostMortemTest, TheExceptionThatARankSendsToItsPeersIsInTheAnswer) {
  const Processes::Ended ended = run("tell");
  EXPECT_EQ(ended.code, 7);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("[0] peer_lost: rank 1 threw: out of luck\n"),
                    HasSubstr("[2] peer_lost: rank 1 threw: out of luck\n")));
  EXPECT_THAT(why(ended),
              AllOf(StartsWith("Rank 1 threw \"out of luck\", after all_reduce #10 "),
                    HasSubstr("its process ended with exit code 7")));
}

TEST_F(PostMortemTest, ARankInAnotherOperationIsTheCause) {
  const Processes::Ended ended = run("mismatch");
  EXPECT_EQ(ended.code, 2);
  // A rank that comes late and receives the error may be missing in the answer.
  EXPECT_THAT(why(ended),
              AllOf(StartsWith("Ranks were in different operations: "),
                    HasSubstr("rank 1 was in broadcast #11 "),
                    ContainsRegex("(ranks 0 and 2 were|rank [02] was) in all_reduce #11 ")));
}

TEST_F(PostMortemTest, AFrozenRankIsTheCauseAndReportedAsStopped) {
  Processes::Variables variables = {{"PEAL_TEST_TIMEOUT", "10000"}};
  variables.merge(without_leak_check());
  const Processes::Ended ended = run("freeze", variables);
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(why(ended),
              AllOf(StartsWith("Rank 1 never entered all_reduce #11 "),
                    HasSubstr("its process was stopped by a signal until ")));
}

/// The parameter is the number of the rank.
class AbsentRankTest : public PostMortemTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(AbsentRankTest, ARankThatEndsBeforeTheMeetingIsLostAtOnceAndIsTheCause) {
  const Processes::Ended ended = peal({"run", "-n", "3", PEAL_TEST_RANK, "absent", GetParam()});
  EXPECT_EQ(ended.code, 9);
  EXPECT_THAT(ended.output,
              ContainsRegex(fmt::format("peer_lost: .*rank {} \\(pid [0-9]+\\) ended with exit "
                                        "code 9 before it ",
                                        GetParam())));
  EXPECT_THAT(ended.output, Not(HasSubstr("ended by the launcher")));  // they ended by themselves
  EXPECT_THAT(
      why(ended),
      StartsWith(fmt::format("The process of rank {} ended with exit code 9.\n", GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Ranks,
                         AbsentRankTest,
                         ::testing::Values("0", "2"),
                         [](const auto& instance) { return "Rank" + instance.param; });

TEST_F(PostMortemTest, AWronglyConfiguredRankIsTheCauseWithTheTextOfItsError) {
  const std::string wrong_on_rank_1 =
      "if [ $RANK = 1 ]; then export PEAL_TIMEOUT=soon; fi; exec " PEAL_TEST_RANK " meet";
  const Processes::Ended ended = peal({"run", "-n", "3", "sh", "-c", wrong_on_rank_1});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(why(ended),
              AllOf(StartsWith("Rank 1 was the first to fail: usage: PEAL_TIMEOUT"),
                    HasSubstr("\"soon\""),
                    HasSubstr("\n  rank 0 (process ")));
}

TEST_F(PostMortemTest, ADifferentWorldSizeOfOneRankIsReportedByAllRanks) {
  const std::string wrong_on_rank_1 =
      "if [ $RANK = 1 ]; then export WORLD_SIZE=4; fi; exec " PEAL_TEST_RANK " meet";
  const Processes::Ended ended = peal({"run", "-n", "3", "sh", "-c", wrong_on_rank_1});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("the ranks disagree on the world size: it is "),
                    HasSubstr("4 for rank 1 (process ")));
}

TEST_F(PostMortemTest, TheDumpIsWrittenBesideTheLogs) {
  const std::string logs = temporary_.path() + "/logs";
  const Processes::Ended ended =
      peal({"run", "-n", "3", "--log-dir", logs, PEAL_TEST_RANK, "kill"});
  EXPECT_THAT(ended.output, HasSubstr(fmt::format("peal: see peal why {}/peal.dump\n", logs)));
  EXPECT_THAT(peal({"why", logs + "/peal.dump"}).output, HasSubstr("killed by SIGKILL"));
}

TEST_F(PostMortemTest, AFolderThatTheUserHasNamedIsKeptWithTheEnds) {
  const std::string named = temporary_.path() + "/flights";
  const Processes::Ended ended = run("kill", {{"PEAL_FLIGHT_DIR", named}});
  EXPECT_THAT(ended.output, HasSubstr(fmt::format("peal: see peal why {}\n", named)));
  for (const std::string file : {"rank-0.flight", "rank-1.flight", "rank-1.end", "rank-2.end"}) {
    EXPECT_TRUE(fs::exists(named + "/" + file)) << file;
  }
  EXPECT_THAT(peal({"why", named}).output, StartsWith("The process of rank 1 was killed"));
}

TEST_F(PostMortemTest, TheReportSaysSoIfTheRecordsCannotBeKept) {
  fs::create_directory(temporary_.path() + fmt::format("/peal-{}", ::geteuid()));
  fs::permissions(temporary_.path() + fmt::format("/peal-{}", ::geteuid()), fs::perms::all);
  const Processes::Ended ended = run("kill");
  EXPECT_EQ(ended.code, 128 + SIGKILL);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("peal: why: The process of rank 1 was killed by SIGKILL"),
                    HasSubstr("peal: the records of the ranks could not be kept: ")));
}

TEST_F(PostMortemTest, FilesOfAKilledLauncherAreRemovedByTheNextOne) {
  Processes processes;
  processes.start({PEAL_PROGRAM, "run", "-n", "2", PEAL_TEST_RANK, "work"},
                  {{"TMPDIR", temporary_.path()}});
  ASSERT_TRUE(processes.wait_for_output(0, "working", Deadline::after(kLimit)));
  processes.signal(0, SIGKILL);
  processes.wait(Deadline::after(kLimit));
  EXPECT_FALSE(has_nothing());
  const Deadline limit = Deadline::after(kLimit);  // the guard must end the ranks first
  while (!has_nothing() && !limit.passed()) run("meet");
  EXPECT_TRUE(has_nothing());
}

}  // namespace
}  // namespace peal::testing
