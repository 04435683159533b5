// No rank of spawn and no child of a rank is left when a rank, the caller or the guard ends. A test
// that must signal or kill the caller of spawn makes that caller in a child.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

#include <gmock/gmock.h>

#include "peal/base/testing/error_of.h"
#include "peal/base/testing/idle_child.h"
#include "peal/launch/testing/spawning.h"
#include "peal/system/pipe.h"
#include "peal/system/process_state.h"

namespace peal {
namespace {

using ::testing::HasSubstr;

TEST_F(SpawnTest, AfterAFailureTheOtherRanksAreEnded) {
  Lifeline line;
  const SpawnError error = spawn_error_of([&] {
    spawn(2,
          [&](Rank rank) {
            if (rank == 1) {
              line.read(1);
              throw std::runtime_error("row 9");
            }
            ::signal(SIGTERM, SIG_IGN);
            if (::fork() == 0) ::setsid();  // its child must not live on either
            line.write('0');
            while (true) ::pause();
          },
          {.grace = Timeout(1)});
  });
  EXPECT_EQ(error.message(), "rank 1 of 2 failed: row 9");
  EXPECT_EQ(error.errors()[0]->kind(), ErrorKind::kAborted);
  line.read(1);  // the child of rank 0 has written too
  EXPECT_TRUE(line.wait_for_the_end());
}

constexpr const char* kBothKilled =
    "ranks 0 and 1 were killed, not having ended within 0.001 s (SpawnOptions::grace)";

/// The warnings that a child process gets, one a line.
class Messages final {
 public:
  Report report() const {
    return [this](std::string_view warning) {
      const std::string line = std::string(warning) + "\n";
      ASSERT_EQ(::write(pipe_.writer.get(), line.data(), line.size()),
                static_cast<ssize_t>(line.size()));
    };
  }
  /// Waits until the child has ended.
  std::string text() {
    pipe_.writer.reset();
    std::string all;
    std::array<char, 256> block{};
    for (ssize_t got = 0; (got = ::read(pipe_.reader.get(), block.data(), block.size())) > 0;) {
      all.append(block.data(), static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  Pipe pipe_ = make_pipe();
};

enum class AtInterrupt : unsigned char { kUsual, kIgnored };

/// A child process that spawns two ranks, each with a child of its own in a new session. `report`
/// also receives the text of spawn's error.
pid_t start_caller(Lifeline& line,
                   AtInterrupt at_interrupt = AtInterrupt::kUsual,
                   const Report& report = silent_report()) {
  const pid_t caller = ::fork();
  if (caller != 0) return caller;
  ::alarm(120);
  try {
    spawn(2,
          [&](Rank) {
            if (at_interrupt == AtInterrupt::kIgnored) ::signal(SIGINT, SIG_IGN);
            if (::fork() == 0) ::setsid();
            line.write('r');
            while (true) ::pause();
          },
          {.grace = Timeout(1), .report = report});
  } catch (const Error& error) {
    report(error.message());
    ::_exit(static_cast<int>(error.kind()));
  }
  ::_exit(99);
}

/// Interrupts the caller when its ranks and their children run. Returns the wait status of the
/// caller when no process is left.
int status_after_interrupt(pid_t caller, Lifeline& line) {
  line.read(4);
  ::kill(caller, SIGINT);
  EXPECT_TRUE(line.wait_for_the_end());
  int status = 0;
  ::waitpid(caller, &status, 0);
  return status;
}

TEST_F(SpawnTest, NoProcessIsLeftWhenTheCallerIsKilled) {
  Lifeline line;
  const pid_t caller = start_caller(line);
  line.read(4);
  ::kill(caller, SIGKILL);
  EXPECT_TRUE(line.wait_for_the_end());
  ::waitpid(caller, nullptr, 0);
}

TEST_F(SpawnTest, AnInterruptEndsTheRanksAndThenTheCaller) {
  Lifeline line;
  Messages messages;
  const pid_t caller = start_caller(line, AtInterrupt::kUsual, messages.report());
  const int status = status_after_interrupt(caller, line);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  EXPECT_EQ(messages.text(), "");
}

TEST_F(SpawnTest, ACallerThatHandlesTheInterruptGetsAnError) {
  Lifeline line;
  Messages messages;
  const auto handler = ::signal(SIGINT, [](int) {});
  const pid_t caller = start_caller(line, AtInterrupt::kUsual, messages.report());
  ::signal(SIGINT, handler);
  // The handler also runs in the ranks, which are killed after the grace.
  const int status = status_after_interrupt(caller, line);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(static_cast<ErrorKind>(WEXITSTATUS(status)), ErrorKind::kAborted);
  EXPECT_EQ(messages.text(),
            std::string(kBothKilled) + "\nspawn was ended by SIGINT; " + kBothKilled + "\n");
}

TEST_F(SpawnTest, RanksThatAreKilledAfterAnInterruptAreReportedBeforeTheCallerEnds) {
  Lifeline line;
  Messages messages;
  const pid_t caller = start_caller(line, AtInterrupt::kIgnored, messages.report());
  const int status = status_after_interrupt(caller, line);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  EXPECT_EQ(messages.text(), std::string(kBothKilled) + "\n");
}

TEST_F(SpawnTest, IfTheGuardIsKilledOnlyTheRanksGoWithIt) {
  const IdleChild other;
  const Error error = error_of([] {
    spawn(2, [](Rank rank) {
      if (rank == 1) ::kill(::getppid(), SIGKILL);
      while (true) ::pause();
    });
  });
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr("guard"));
  EXPECT_EQ(::kill(other.pid(), 0), 0);
  EXPECT_NE(state_of_process(other.pid()), ProcessState::kZombie);
}

}  // namespace
}  // namespace peal
