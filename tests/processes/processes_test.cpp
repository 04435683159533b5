// Ranks as real processes: the grid, and the state of the other ranks when one is killed, frozen,
// throws or never comes.
#include "tests/support/processes.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"
#include "peal/net/testing/reserved_port.h"

#include "tests/support/leftovers.h"

namespace peal::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class ProcessesTest : public ::testing::TestWithParam<std::string> {
 protected:
  /// Starts the ranks of one job. `stopped` is the rank that the test stops.
  void start(int ranks,
             const std::string& what,
             const Processes::Variables& more = {},
             std::optional<int> stopped = {}) {
    for (int rank = 0; rank < ranks; ++rank) {
      Processes::Variables variables = {{"RANK", std::to_string(rank)},
                                        {"WORLD_SIZE", std::to_string(ranks)},
                                        {"LOCAL_RANK", std::to_string(rank)},
                                        {"LOCAL_WORLD_SIZE", std::to_string(ranks)},
                                        {"MASTER_ADDR", "127.0.0.1"},
                                        {"MASTER_PORT", port_.text()},
                                        {"PEAL_SECRET", "a secret of the test"},
                                        {"PEAL_STAGE", "8K"},
                                        {"PEAL_TEST_JOB", job_},
                                        {"PEAL_TRANSPORT", GetParam()}};
      variables.insert(more.begin(), more.end());
      if (rank == stopped) variables.merge(without_leak_check());
      processes_.start({PEAL_TEST_RANK, what}, variables);
    }
  }

  void wait_until_working(std::size_t ranks) {
    const Deadline deadline = Deadline::after(kLimit);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      ASSERT_TRUE(processes_.wait_for_output(rank, "working", deadline)) << "rank " << rank;
    }
  }

  void kill_one_of_four(const std::string& what) {
    start(4, what);
    wait_until_working(4);
    processes_.signal(2, SIGKILL);
    const Deadline limit = Deadline::after(kLimit);
    for (const std::size_t rank : {0, 1, 3}) {
      EXPECT_TRUE(processes_.wait_for_output(rank, "ended with", limit)) << "rank " << rank;
    }
    const auto ended = processes_.wait(Deadline::after(kLimit));
    EXPECT_EQ(ended[2].code, -SIGKILL);
    for (const std::size_t rank : {0, 1, 3}) {
      EXPECT_TRUE(ended[rank].in_time) << "rank " << rank << " hung";
      EXPECT_EQ(ended[rank].code, 3) << ended[rank].output;
      EXPECT_THAT(ended[rank].output, HasSubstr("peer_lost: rank 2"));
    }
    end_children();
  }

  /// Ranks 0 and 2 make a group with rank 1, which has ended.
  void expect_that_rank_1_is_missed(const std::string& what) {
    start(3, what);
    const Deadline soon = Deadline::after(kLimit);
    for (const std::size_t rank : {0, 2}) {
      EXPECT_TRUE(processes_.wait_for_output(rank, "working", soon));
      EXPECT_TRUE(processes_.wait_for_output(rank, "ended with", soon));
    }
    const auto ended = processes_.wait(soon);
    for (const std::size_t rank : {0, 2}) {
      // The peer that the new group waits for has ended, or the old group noticed the loss before.
      EXPECT_THAT(
          ended[rank].output,
          ContainsRegex(
              "peer_lost: (rank [02] could not join the group: )?"
              "rank 1 \\((process|pid) [0-9]+ on [^)]+\\) (ended, or left all groups, "
              "before it joined the group world/0,1,2.0|was lost: it (has ended|ended, or its "
              "connection broke))"));
    }
    end_children();
  }

  /// Kills the processes that ranks have left behind.
  void end_children() const {
    for (const pid_t child : leftovers().processes) ::kill(child, SIGKILL);
  }

  /// Three ranks, started by `peal run`. Rank 1 fails, and the others need it.
  Processes::Ended launch_with_bad_luck(const std::string& what) {
    processes_.start({PEAL_PROGRAM, "run", "-n", "3", PEAL_TEST_RANK, what},
                     {{"PEAL_STAGE", "8K"}, {"PEAL_TRANSPORT", GetParam()}});
    return processes_.wait(Deadline::after(kLimit)).front();
  }

  Leftovers leftovers() const { return belongings_of("PEAL_TEST_JOB=" + job_); }
  Leftovers left(const Leftovers& before) const { return left_of(before, "PEAL_TEST_JOB=" + job_); }

  /// The address where the ranks meet; a test starts one job there.
  const net::ReservedPort port_;
  Processes processes_;
  std::string job_ = std::to_string(::getpid()) + "." + GetParam();
};

TEST_P(ProcessesTest, TheWholeGridIsCorrectBetweenProcesses) {
  start(3, "grid");
  for (const auto& ended : processes_.wait(Deadline::after(kLimit))) {
    EXPECT_TRUE(ended.in_time);
    EXPECT_EQ(ended.code, 0) << ended.output;
  }
}

/// Usually 160 MB, in messages of 8 KB. The receiver takes none of them until the sender is held
/// back.
TEST_P(ProcessesTest, ABurstOfSmallMessagesDoesNotFillTheMemoryOfItsReceiver) {
  start(2, "burst");
  const auto ended = processes_.wait(Deadline::after(kLimit));
  for (const auto& one : ended) {
    EXPECT_TRUE(one.in_time);
    EXPECT_EQ(one.code, 0) << one.output;
  }
  int grown = -1;
  ASSERT_EQ(std::sscanf(ended[1].output.c_str(), "grew by %d MiB", &grown), 1) << ended[1].output;
  if (kSanitized) return;  // the sanitizers' allocators keep what is freed
  EXPECT_GE(grown, 0);
  EXPECT_LT(grown, 40);
}

TEST_P(ProcessesTest, TheSameProcessesCanMeetRepeatedlyAtTheSamePlace) {
  start(3, "again");
  for (const auto& ended : processes_.wait(Deadline::after(kLimit))) {
    EXPECT_EQ(ended.code, 0) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("done"));
  }
}

TEST_P(ProcessesTest, AKilledRankIsTheSameErrorOnAllOthersAndNoRankHangs) {
  kill_one_of_four("work");
}

TEST_P(ProcessesTest, AKilledRankEndsMessagesThatWaitForItAndThoseThatDoNot) {
  kill_one_of_four("messages");
}

TEST_P(ProcessesTest, AKilledRankIsNoticedAtOnceThoughItsForkedChildLivesOn) {
  kill_one_of_four("leave");
}

TEST_P(ProcessesTest, ALaterGroupReportsThatARankHasEnded) {
  expect_that_rank_1_is_missed("subgroup");
}

TEST_P(ProcessesTest, ALaterGroupReportsAnEndedRankThoughItsForkedChildLivesOn) {
  expect_that_rank_1_is_missed("orphan");
}

TEST_P(ProcessesTest, ARankThatThrowsReportsItsErrorAndIsNamedAsTheCause) {
  const Processes::Ended ended = launch_with_bad_luck("throw");
  EXPECT_EQ(ended.code, 7) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("[1] out of luck\n"));
  EXPECT_THAT(ended.output,
              ContainsRegex("\\[0\\] peer_lost: rank 1 \\(pid [0-9]+ on [^)]+\\) has "
                            "left the group because of an exception"));
  EXPECT_THAT(ended.output, HasSubstr("peal: 3 ranks failed, the likely cause first:\n  rank 1 ("));
  EXPECT_THAT(ended.output, HasSubstr("peal: the last lines of rank 1:\n  | out of luck\n"));
}

TEST_P(ProcessesTest, ARankThatTerminatesIsNamedAsTheCause) {
  const Processes::Ended ended = launch_with_bad_luck("terminate");
  EXPECT_EQ(ended.code, 128 + SIGABRT) << ended.output;
  EXPECT_THAT(ended.output, ContainsRegex("\\[1\\] .*out of luck\n"));
  // The compiler decides whether the stack, and the group with it, is unwound first.
  EXPECT_THAT(
      ended.output,
      ContainsRegex("\\[0\\] .*peer_lost: rank 1 \\(pid[^\n]*(was lost|because of an exception)"));
  EXPECT_THAT(ended.output,
              ContainsRegex("peal: the last lines of rank 1:\n(  \\| .*\n)*  \\| .*out of luck"));
}

TEST_P(ProcessesTest, ARankThatLeavesWithCollectivesInFlightIsNamedAsTheCause) {
  const Processes::Ended ended = launch_with_bad_luck("abandon");
  EXPECT_EQ(ended.code, 2) << ended.output;
  EXPECT_THAT(ended.output,
              HasSubstr("[0] peer_lost: rank 1 has left the group while collectives"));
  EXPECT_THAT(ended.output, HasSubstr("peal: the last lines of rank 1:\n  | timeout: the group"));
}

TEST_P(ProcessesTest, AFrozenRankIsATimeoutAndNotALoss) {
  start(3, "work", {{"PEAL_TEST_TIMEOUT", "1000"}}, 1);
  wait_until_working(3);
  processes_.signal(1, SIGSTOP);
  EXPECT_TRUE(processes_.wait_for_output(0, "timeout", Deadline::after(kLimit)));
  EXPECT_TRUE(processes_.wait_for_output(2, "timeout", Deadline::after(kLimit)));
  processes_.signal(1, SIGCONT);
  EXPECT_TRUE(processes_.wait_for_output(1, "timeout", Deadline::after(kLimit)));
  for (const auto& ended : processes_.wait(Deadline::after(kLimit))) {
    EXPECT_TRUE(ended.in_time);
    EXPECT_EQ(ended.code, 3) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("timeout"));
  }
}

TEST_P(ProcessesTest, AFrozenRankThatContinuesInTimeDisturbsNoRank) {
  start(3, "grid", {}, 1);
  wait_until_working(3);
  const Deadline limit = Deadline::after(kLimit);
  int freezes = 0;
  do {
    processes_.signal(1, SIGSTOP);
    // long enough for the others to notice
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    processes_.signal(1, SIGCONT);
    ++freezes;
  } while (!limit.passed() &&
           !processes_.wait_for_output(1, "done", limit.within(std::chrono::milliseconds(10))));
  EXPECT_GE(freezes, 2);
  for (const auto& ended : processes_.wait(Deadline::after(kLimit)))
    EXPECT_EQ(ended.code, 0) << ended.output;
}

TEST_P(ProcessesTest, AKilledJobLeavesNothingBehind) {
  const TemporaryFolder temporary;
  start(3, "work", {{"TMPDIR", temporary.path()}});
  wait_until_working(3);
  const Leftovers before = leftovers();
  EXPECT_EQ(before.processes.size(), 3u);
  EXPECT_FALSE(before.sockets.empty());
  EXPECT_EQ(before.memory.empty(), GetParam() != "shm");
  for (std::size_t rank = 0; rank < 3; ++rank) processes_.signal(rank, SIGKILL);
  processes_.wait(Deadline::after(kLimit));
  EXPECT_EQ(left(before), Leftovers());
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
}

TEST_P(ProcessesTest, ItemsThatAJobLeavesBehindAreDetected) {
  start(3, "leave");
  wait_until_working(3);
  const Leftovers before = leftovers();
  for (std::size_t rank = 0; rank < 3; ++rank) processes_.signal(rank, SIGKILL);
  processes_.wait(Deadline::after(kLimit));
  const Leftovers seen = left(before);
  end_children();
  EXPECT_EQ(seen.processes.size(), 3u);
  for (const std::uint64_t socket : before.sockets) {
    EXPECT_FALSE(seen.sockets.contains(socket)) << "a forked child has a socket of its parent";
  }
  EXPECT_EQ(seen.memory.empty(), GetParam() != "shm");
}

TEST_P(ProcessesTest, ARankThatNeverComesIsNamedInTime) {
  for (const int rank : {0, 2}) {
    processes_.start({PEAL_TEST_RANK, "meet"},
                     {{"RANK", std::to_string(rank)},
                      {"WORLD_SIZE", "3"},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", port_.text()},
                      {"PEAL_TIMEOUT", "2"},
                      {"PEAL_TRANSPORT", GetParam()}});
  }
  for (const auto& ended : processes_.wait(Deadline::after(kLimit))) {
    EXPECT_TRUE(ended.in_time);
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.output, ::testing::AllOf(HasSubstr("timeout"), HasSubstr("rank 1")));
  }
}

TEST_P(ProcessesTest, RanksWithDifferentTransportsAllReportTheTransportOfEachRank) {
  for (const int rank : {0, 1, 2}) {
    processes_.start({PEAL_TEST_RANK, "meet"},
                     {{"RANK", std::to_string(rank)},
                      {"WORLD_SIZE", "3"},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", port_.text()},
                      {"PEAL_TRANSPORT", rank == 1 ? "auto" : GetParam()}});
  }
  for (const auto& ended : processes_.wait(Deadline::after(kLimit))) {
    EXPECT_TRUE(ended.in_time);
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.output,
                HasSubstr("mismatch: the ranks are configured with different transports: auto on "
                          "rank 1; " +
                          GetParam() + " on rank 0, 2; "));
  }
}

TEST_P(ProcessesTest, RanksWithDifferentAlgorithmsAllNameTheSettings) {
  for (const int rank : {0, 1}) {
    processes_.start({PEAL_TEST_RANK, "work"},
                     {{"RANK", std::to_string(rank)},
                      {"WORLD_SIZE", "2"},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", port_.text()},
                      {"PEAL_TUNE", rank == 1 ? "all_reduce:0-inf:recursive_doubling" : ""},
                      {"PEAL_TRANSPORT", GetParam()}});
  }
  for (const auto& ended : processes_.wait(Deadline::after(kLimit))) {
    EXPECT_TRUE(ended.in_time);
    EXPECT_EQ(ended.code, 3);
    EXPECT_THAT(ended.output,
                ::testing::AllOf(HasSubstr("mismatch: ranks are in different operations"),
                                 HasSubstr("set PEAL_ALGORITHM and PEAL_TUNE to the same values")));
  }
}

INSTANTIATE_TEST_SUITE_P(Transports,
                         ProcessesTest,
                         ::testing::Values("shm", "tcp"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace peal::testing
