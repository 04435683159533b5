// A guard that starts ranks by order, as a process of its own.
#include "peal/launch/local_guard.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/launch/process_tree.h"
#include "peal/launch/signals.h"
#include "peal/launch/testing/shell_rank.h"
#include "peal/system/pipe.h"

namespace peal::launch {
namespace {

using std::chrono::minutes;

GuardDuty duty() { return {.grace = minutes(1), .starts = Starts::kAlsoLater}; }

/// Everything that ranks have written until the first newline.
std::string line_from(const peal::Pipe& output) {
  std::string text;
  char c = 0;
  pollfd entry{output.reader.get(), POLLIN, 0};
  while (::poll(&entry, 1, 100'000) == 1 && ::read(entry.fd, &c, 1) == 1 && c != '\n') {
    text.push_back(c);
  }
  return text;
}

class LocalGuardTest : public testing::Test {
 protected:
  void start(const RankCommand& rank) {
    guard_.start(rank, {output_.writer.get(), output_.writer.get()});
  }
  void start(Rank rank, const std::string& script) { start(shell_rank(rank, script)); }

  GuardEvent next_event() {
    while (true) {
      if (const auto event = guard_.try_next()) return *event;
      pollfd entry{guard_.events(), POLLIN, 0};
      if (guard_.has_ended() || ::poll(&entry, 1, 100'000) != 1) return {.value = -1};
    }
  }

  std::string line() const { return line_from(output_); }

  const OrphanAdoption adoption_;
  SignalReader signals_;
  LocalGuard guard_{duty()};
  peal::Pipe output_ = make_pipe();
};

TEST_F(LocalGuardTest, ARankIsStartedLaterWithItsEnvironmentAndItsOutput) {
  start(7, "echo it runs; exit 3");
  EXPECT_EQ(line(), "it runs");
  const GuardEvent end = next_event();
  EXPECT_EQ(end.kind, GuardEvent::Kind::kEnded);
  EXPECT_EQ(end.rank, 7);
  EXPECT_EQ(WEXITSTATUS(end.value), 3);
  start(8, "exit 4");  // the guard has stayed although no rank was left
  EXPECT_EQ(next_event().rank, 8);
}

TEST_F(LocalGuardTest, TheEnvironmentMayBeLarge) {
  RankCommand rank = shell_rank(0, "echo ${#A} ${#B}");
  rank.environment = {{"A", std::string(100'000, 'x')}, {"B", "two\nlines"}};
  start(rank);
  EXPECT_EQ(line(), "100000 9");
}

TEST_F(LocalGuardTest, AProgramThatCannotRunIsReportedAndEndsNoOtherRank) {
  start(0, "exec sleep 100");
  RankCommand rank = shell_rank(1, "");
  rank.program = "/no/such/program";
  start(rank);
  const GuardEvent event = next_event();
  EXPECT_EQ(event.kind, GuardEvent::Kind::kNotStarted);
  EXPECT_EQ(event.rank, 1);
  EXPECT_EQ(event.value, ENOENT);
  guard_.signal(0, SIGKILL);
  EXPECT_EQ(next_event().rank, 0);
}

TEST_F(LocalGuardTest, ASignalReachesOneRank) {
  start(0, "exec sleep 100");
  start(1, "exec sleep 100");
  guard_.signal(1, SIGUSR1);
  const GuardEvent end = next_event();
  EXPECT_EQ(end.rank, 1);
  EXPECT_EQ(WTERMSIG(end.value), SIGUSR1);
}

TEST_F(LocalGuardTest, WhatARankLeavesInItsGroupEndsWithTheRank) {
  start(0, "sh -c 'trap \"echo ended; exit 0\" TERM; echo $PPID; sleep 100 & wait' & sleep 100; :");
  ::kill(static_cast<pid_t>(std::stol(line())), SIGKILL);
  EXPECT_EQ(next_event().rank, 0);
  EXPECT_EQ(line(), "ended");
}

TEST_F(LocalGuardTest, ARequestToStopEndsTheGuardAndEveryRank) {
  start(0, "exec sleep 100");
  start(1, "exec sleep 100");
  guard_.stop(SIGTERM, SignalOrigin::kProcess);
  EXPECT_EQ(next_event().kind, GuardEvent::Kind::kEnded);
  EXPECT_EQ(next_event().kind, GuardEvent::Kind::kEnded);
  EXPECT_EQ(next_event().kind, GuardEvent::Kind::kGone);
  EXPECT_EQ(next_event().value, -1);
  EXPECT_TRUE(guard_.has_ended());
}

TEST(GuardLifeTest, NoRankOutlivesTheLauncher) {
  const OrphanAdoption adoption;
  {
    SignalReader signals;
    LocalGuard guard(duty());
    const peal::Pipe output = make_pipe();
    guard.start(shell_rank(0, "echo x; trap '' TERM; sleep 100 & sleep 100"),
                {output.writer.get(), output.writer.get()});
    ASSERT_EQ(line_from(output), "x");
  }
  EXPECT_TRUE(descendants_of(::getpid()).empty());
}

/// The files of stop flags, with their folders.
class StopFlagFilesTest : public LocalGuardTest {
 protected:
  StopFlagFilesTest() {
    start(0, "echo $PEAL_STOP_FLAG; exec sleep 100");
    first_ = line();
  }

  std::string first_;
};

TEST_F(StopFlagFilesTest, TheFileOfARankEndsWithTheRank) {
  start(1, "echo $PEAL_STOP_FLAG; exec sleep 100");
  const std::string second = line();
  ASSERT_TRUE(std::filesystem::exists(first_) && std::filesystem::exists(second));
  guard_.signal(0, SIGKILL);
  EXPECT_EQ(next_event().kind, GuardEvent::Kind::kEnded);
  EXPECT_FALSE(std::filesystem::exists(first_));
  EXPECT_TRUE(std::filesystem::exists(second));
  start(0, "echo $PEAL_STOP_FLAG");
  EXPECT_EQ(line(), first_);  // the number of a rank may come again
}

TEST_F(StopFlagFilesTest, NothingIsLeftWhenTheGuardEnds) {
  ASSERT_TRUE(std::filesystem::exists(first_));
  guard_.stop(SIGTERM, SignalOrigin::kProcess);
  while (next_event().kind != GuardEvent::Kind::kGone) {
  }
  EXPECT_EQ(next_event().value, -1);  // the guard has ended
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(first_).parent_path()));
}

TEST(GuardLifeTest, NoStopFlagOutlivesAGuardThatIsKilled) {
  const OrphanAdoption adoption;
  std::string folder;
  {
    SignalReader signals;
    LocalGuard guard(duty());
    const peal::Pipe output = make_pipe();
    guard.start(shell_rank(0, "printf '%s\\n' ${PEAL_STOP_FLAG%/*}; exec sleep 100"),
                {output.writer.get(), output.writer.get()});
    folder = line_from(output);
    ASSERT_TRUE(std::filesystem::exists(folder));
    ::kill(descendants_of(::getpid()).front(), SIGKILL);
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(GuardLifeTest, TheCommandAfterTheEndOutlivesAGuardThatIsKilled) {
  const OrphanAdoption adoption;
  const std::string file = testing::TempDir() + "/after_guard_" + std::to_string(::getpid());
  SignalReader signals;
  LocalGuard guard(duty());
  const peal::Pipe output = make_pipe();
  RankCommand rank = shell_rank(0, "echo x; exec sleep 100");
  rank.environment["MADE"] = file;
  rank.after_end = {"/bin/sh", "-c", "cat; echo done > $MADE"};
  guard.start(rank, {output.writer.get(), output.writer.get()});
  ASSERT_EQ(line_from(output), "x");
  ::kill(descendants_of(::getpid()).front(), SIGKILL);
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
  EXPECT_EQ(::unlink(file.c_str()), 0);
}

}  // namespace
}  // namespace peal::launch
