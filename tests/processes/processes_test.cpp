// Ranks as real processes: the grid once more, and what becomes of the others when one is killed,
// frozen or never comes.
#include "tests/support/processes.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::testing {
namespace {

using ::testing::HasSubstr;

constexpr auto kPatience = std::chrono::seconds(60);
/// What survivors of a kill may take to notice and end, on a machine that is busy with other tests.
constexpr auto kNotice = std::chrono::seconds(5);

class ProcessesTest : public ::testing::TestWithParam<std::string> {
 protected:
  /// Starts the ranks of one job.
  void start(int ranks, const std::string& what, const Processes::Variables& more = {}) {
    const std::string meeting = port();
    for (int rank = 0; rank < ranks; ++rank) {
      Processes::Variables variables = {{"RANK", std::to_string(rank)},
                                        {"WORLD_SIZE", std::to_string(ranks)},
                                        {"LOCAL_RANK", std::to_string(rank)},
                                        {"LOCAL_WORLD_SIZE", std::to_string(ranks)},
                                        {"MASTER_ADDR", "127.0.0.1"},
                                        {"MASTER_PORT", meeting},
                                        {"PEAL_SECRET", "of the test"},
                                        {"PEAL_STAGE", "8K"},
                                        {"PEAL_TRANSPORT", GetParam()}};
      variables.insert(more.begin(), more.end());
      processes_.start({PEAL_TEST_RANK, what}, variables);
    }
  }

  void kill_one_of_four(const std::string& what) {
    start(4, what);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      ASSERT_TRUE(processes_.wait_for_output(rank, "working", Deadline::after(kPatience)));
    }
    processes_.signal(2, SIGKILL);
    const auto ended = processes_.wait(Deadline::after(kNotice));
    EXPECT_EQ(ended[2].code, -SIGKILL);
    for (const std::size_t rank : {0, 1, 3}) {
      EXPECT_TRUE(ended[rank].in_time) << "rank " << rank << " hung";
      EXPECT_EQ(ended[rank].code, 3) << ended[rank].output;
      EXPECT_THAT(ended[rank].output, HasSubstr("peer_lost: rank 2"));
    }
  }

  static std::string port() {
    // Ports below the range from which the system takes those of clients; one for each test and
    // process.
    static int next = 0;
    return std::to_string(10'000 + (static_cast<int>(::getpid()) * 16 + next++) % 20'000);
  }

  Processes processes_;
};

TEST_P(ProcessesTest, TheWholeGridHoldsBetweenProcesses) {
  start(3, "grid");
  for (const auto& ended : processes_.wait(Deadline::after(kPatience))) {
    EXPECT_TRUE(ended.in_time);
    EXPECT_EQ(ended.code, 0) << ended.output;
  }
}

TEST_P(ProcessesTest, AKilledRankIsTheSameErrorOnAllOthersAndNothingHangs) {
  kill_one_of_four("work");
}

TEST_P(ProcessesTest, AKilledRankEndsMessagesThatWaitForItAndThoseThatDoNot) {
  kill_one_of_four("messages");
}

TEST_P(ProcessesTest, AFrozenRankIsATimeoutAndNotALoss) {
  start(3, "work", {{"PEAL_TIMEOUT", "1"}});
  for (std::size_t rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(processes_.wait_for_output(rank, "working", Deadline::after(kPatience)));
  }
  processes_.signal(1, SIGSTOP);
  EXPECT_TRUE(processes_.wait_for_output(0, "timeout", Deadline::after(kPatience)));
  EXPECT_TRUE(processes_.wait_for_output(2, "timeout", Deadline::after(kPatience)));
  processes_.signal(1, SIGCONT);
  for (const auto& ended : processes_.wait(Deadline::after(kNotice))) {
    EXPECT_TRUE(ended.in_time);
    EXPECT_EQ(ended.code, 3) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("timeout"));
  }
}

TEST_P(ProcessesTest, AFrozenRankThatGoesOnInTimeDisturbsNobody) {
  start(3, "grid");
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    processes_.signal(1, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    processes_.signal(1, SIGCONT);
  }
  for (const auto& ended : processes_.wait(Deadline::after(kPatience)))
    EXPECT_EQ(ended.code, 0) << ended.output;
}

TEST_P(ProcessesTest, AKilledJobLeavesNothingBehind) {
  const auto files = [] {
    std::vector<std::string> names;
    for (const char* folder : {"/dev/shm", "/tmp"}) {
      for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("peal") && !name.starts_with("peal-test")) names.push_back(name);
      }
    }
    return names;
  };
  const auto before = files();
  start(3, "work");
  for (std::size_t rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(processes_.wait_for_output(rank, "working", Deadline::after(kPatience)));
  }
  for (std::size_t rank = 0; rank < 3; ++rank) processes_.signal(rank, SIGKILL);
  processes_.wait(Deadline::after(kNotice));
  EXPECT_EQ(files(), before);
}

TEST_P(ProcessesTest, ARankThatNeverComesIsNamedInTime) {
  const std::string meeting = port();
  for (const int rank : {0, 2}) {
    processes_.start({PEAL_TEST_RANK, "meet"},
                     {{"RANK", std::to_string(rank)},
                      {"WORLD_SIZE", "3"},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", meeting},
                      {"PEAL_TIMEOUT", "2"},
                      {"PEAL_TRANSPORT", GetParam()}});
  }
  for (const auto& ended : processes_.wait(Deadline::after(kNotice))) {
    EXPECT_TRUE(ended.in_time);
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.output, ::testing::AllOf(HasSubstr("timeout"), HasSubstr("rank 1")));
  }
}

INSTANTIATE_TEST_SUITE_P(Transports,
                         ProcessesTest,
                         ::testing::Values("shm", "tcp"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace peal::testing
