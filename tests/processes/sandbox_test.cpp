// Jobs in sandboxes: forbidden system calls, and limits of files and descriptors. Ranks work
// without optional features. If a required feature is missing, all ranks name it.
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"
#include "peal/net/testing/reserved_port.h"

#include "tests/support/processes.h"

namespace peal::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Command = std::vector<std::string>;

Command without(const Command& rules, const Command& command) {
  Command all = {PEAL_WITHOUT};
  all.insert(all.end(), rules.begin(), rules.end());
  all.emplace_back("--");
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

/// Runs with a limit of the shell: "-S -f 1000" (which the process may raise), "-n 60".
Command limited(const std::string& limit, const std::string& command) {
  return {"/bin/sh", "-c", "ulimit " + limit + " && exec " + command};
}

class SandboxTest : public ::testing::Test {
 protected:
  /// Starts one rank of a job of two.
  void start(int rank, const Command& command, const Processes::Variables& more = {}) {
    Processes::Variables variables = {{"RANK", std::to_string(rank)},
                                      {"WORLD_SIZE", "2"},
                                      {"MASTER_ADDR", "127.0.0.1"},
                                      {"MASTER_PORT", port_.text()},
                                      {"PEAL_SECRET", "a secret of the test"}};
    variables.insert(more.begin(), more.end());
    processes_.start(command, variables);
  }

  std::vector<Processes::Ended> wait() { return processes_.wait(Deadline::after(kLimit)); }

  Processes::Ended wait_for_one(const Command& command, const Processes::Variables& more = {}) {
    processes_.start(command, more);
    return wait().front();
  }

  const net::ReservedPort port_;
  Processes processes_;
};

const Command kCount = {PEAL_TEST_RANK, "count"};
const Command kNoMemoryFiles = {"memfd_create=EPERM"};

TEST_F(SandboxTest, WithoutSharedMemoryTheRanksUseTcpAndRank0WarnsOnce) {
  for (const int rank : {0, 1}) start(rank, without(kNoMemoryFiles, kCount));
  const auto ended = wait();
  for (const auto& one : ended) {
    EXPECT_EQ(one.code, 0) << one.output;
    EXPECT_THAT(one.output, HasSubstr("counted"));
  }
  EXPECT_THAT(ended[0].output,
              AllOf(HasSubstr("use TCP inside a host"), HasSubstr("memfd_create")));
  EXPECT_THAT(ended[1].output, Not(HasSubstr("warning")));
}

TEST_F(SandboxTest, OneRankWithoutSharedMemoryMakesAllRanksUseTcp) {
  start(0, kCount);
  start(1, without(kNoMemoryFiles, kCount));
  const auto ended = wait();
  for (const auto& one : ended) EXPECT_EQ(one.code, 0) << one.output;
  EXPECT_THAT(ended[0].output, HasSubstr("shared memory is not available to rank 1"));
}

TEST_F(SandboxTest, SharedMemoryThatIsRequestedButForbiddenIsAnErrorOnAllRanks) {
  start(0, kCount, {{"PEAL_TRANSPORT", "shm"}});
  start(1, without(kNoMemoryFiles, kCount), {{"PEAL_TRANSPORT", "shm"}});
  for (const auto& one : wait()) {
    EXPECT_EQ(one.code, 2) << one.output;
    EXPECT_THAT(one.output, AllOf(HasSubstr("memfd_create"), HasSubstr("not permitted")));
  }
}

/// The last step fails: the descriptors of a peer's memory cannot be received.
TEST_F(SandboxTest, AGroupThatOneRankCannotFinishIsAnErrorOnAllRanks) {
  start(0, kCount, {{"PEAL_TRANSPORT", "shm"}});
  start(1, without({"recvmsg=EMFILE"}, kCount), {{"PEAL_TRANSPORT", "shm"}});
  const auto ended = wait();
  for (const auto& one : ended) {
    EXPECT_EQ(one.code, 2) << one.output;
    EXPECT_THAT(one.output, HasSubstr("Too many open files"));
  }
  EXPECT_THAT(ended[0].output, HasSubstr("rank 1 could not join the group"));
}

class NoPidfdTest : public SandboxTest, public ::testing::WithParamInterface<int> {};

/// One rank cannot get a pidfd of its peer. So both ranks keep the connection.
TEST_P(NoPidfdTest, WithoutAPidfdAConnectionReportsTheEndOfARank) {
  const Command work = {PEAL_TEST_RANK, "work"};
  for (const int rank : {0, 1}) {
    start(rank, rank == GetParam() ? without({"pidfd_open=EPERM"}, work) : work);
  }
  const Deadline soon = Deadline::after(kLimit);
  for (const std::size_t rank : {0, 1}) {
    ASSERT_TRUE(processes_.wait_for_output(rank, "working", soon)) << processes_.output(rank);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  for (const std::size_t rank : {0, 1}) {
    EXPECT_THAT(processes_.output(rank), Not(HasSubstr("ended")));
  }
  processes_.signal(1, SIGKILL);
  const auto ended = wait();
  EXPECT_TRUE(ended[0].in_time);
  EXPECT_EQ(ended[0].code, 3) << ended[0].output;
  EXPECT_THAT(ended[0].output, AllOf(HasSubstr("rank 1"), HasSubstr("was lost")));
}

INSTANTIATE_TEST_SUITE_P(Ranks, NoPidfdTest, ::testing::Values(0, 1));

TEST_F(SandboxTest, AForbiddenAffinityCallDoesNotPreventALaunch) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer asks for the affinity itself, and ends without";
  const Command launch = {PEAL_PROGRAM, "run", "-n", "2", PEAL_TEST_RANK, "count"};
  const auto ended = wait_for_one(without({"sched_getaffinity=EPERM"}, launch));
  EXPECT_TRUE(ended.in_time);
  EXPECT_EQ(ended.code, 0) << ended.output;
}

/// In units of 512 or 1024 bytes, depending on the shell; either limit is too small for the stages
/// of the ranks.
TEST_F(SandboxTest, ALimitOfFileSizesIsNamed) {
  const std::string rank = std::string(PEAL_TEST_RANK) + " count";
  for (const int number : {0, 1}) start(number, limited("-S -f 100", rank));
  for (const auto& one : wait()) {
    EXPECT_EQ(one.code, 2) << one.output;
    EXPECT_THAT(one.output, HasSubstr("ulimit -f"));
  }
}

TEST_F(SandboxTest, ALimitOfFileSizesDoesNotStopTcpJobsWithRecords) {
  const TemporaryFolder folder;
  const std::string rank = std::string(PEAL_TEST_RANK) + " count";
  const Processes::Variables variables = {{"PEAL_TRANSPORT", "tcp"},
                                          {"PEAL_FLIGHT_DIR", folder.path()}};
  for (const int number : {0, 1}) start(number, limited("-S -f 20", rank), variables);
  for (const auto& one : wait()) {
    EXPECT_EQ(one.code, 0) << one.output;
    EXPECT_THAT(one.output,
                AllOf(HasSubstr("are not recorded in PEAL_FLIGHT_DIR"), HasSubstr("ulimit -f")));
  }
}

TEST_F(SandboxTest, AGroupOfTwoNeedsFewDescriptors) {
  const std::string rank = std::string(PEAL_TEST_RANK) + " count";
  for (const int number : {0, 1}) start(number, limited("-n 64", rank));
  for (const auto& one : wait()) EXPECT_EQ(one.code, 0) << one.output;
}

TEST_F(SandboxTest, TooFewDescriptorsAreAnErrorOnAllRanksThatNamesTheLimit) {
  const std::string rank = std::string(PEAL_TEST_RANK) + " count";
  start(0, {PEAL_TEST_RANK, "count"});
  start(1, limited("-n 16", rank));
  for (const auto& one : wait()) {
    EXPECT_EQ(one.code, 2) << one.output;
    EXPECT_THAT(one.output, AllOf(HasSubstr("open files"), HasSubstr("ulimit -Hn")));
  }
}

class FewDescriptorsTest : public SandboxTest, public ::testing::WithParamInterface<std::string> {};

/// Rank 0 may open 0, 1, 2, ... more files while both ranks make a sub-group.
TEST_P(FewDescriptorsTest, AGroupIsMadeOnAllRanksOrOnNoRank) {
  if (kSanitizers.find("undefined") != std::string_view::npos) {
    GTEST_SKIP() << "the sanitizer checks objects through a pipe, and reports an object as invalid "
                    "if no descriptor is left for the pipe";
  }
  for (const int rank : {0, 1}) {
    start(rank, {PEAL_TEST_RANK, "few_files"}, {{"PEAL_TRANSPORT", GetParam()}});
  }
  for (const auto& one : wait()) {
    EXPECT_TRUE(one.in_time) << one.output;
    EXPECT_EQ(one.code, 0) << one.output;
    EXPECT_THAT(one.output, AllOf(HasSubstr("with 0 files: none"), HasSubstr("done")));
  }
}

INSTANTIATE_TEST_SUITE_P(Transports,
                         FewDescriptorsTest,
                         ::testing::Values("shm", "tcp"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace peal::testing
