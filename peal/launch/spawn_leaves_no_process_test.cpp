// No rank of spawn and no child of a rank is left when a rank, the caller or the guard ends. A test
// that must signal or kill the caller of spawn makes that caller in a child.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include <gmock/gmock.h>

#include "peal/base/testing/error_of.h"
#include "peal/base/testing/idle_child.h"
#include "peal/launch/testing/spawning.h"
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

/// A child process that spawns two ranks, each with a child of its own in a new session.
pid_t start_caller(Lifeline& line) {
  const pid_t caller = ::fork();
  if (caller != 0) return caller;
  ::alarm(120);
  try {
    spawn(2,
          [&](Rank) {
            if (::fork() == 0) ::setsid();
            line.write('r');
            while (true) ::pause();
          },
          {.grace = Timeout(1)});
  } catch (const Error& error) {
    ::_exit(static_cast<int>(error.kind()));
  }
  ::_exit(99);
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
  const pid_t caller = start_caller(line);
  line.read(4);
  ::kill(caller, SIGINT);
  EXPECT_TRUE(line.wait_for_the_end());
  int status = 0;
  ::waitpid(caller, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
}

TEST_F(SpawnTest, ACallerThatHandlesTheInterruptGetsAnError) {
  Lifeline line;
  const auto handler = ::signal(SIGINT, [](int) {});
  const pid_t caller = start_caller(line);
  ::signal(SIGINT, handler);
  line.read(4);
  ::kill(caller, SIGINT);  // the handler also runs in the ranks, which are killed after the grace
  EXPECT_TRUE(line.wait_for_the_end());
  int status = 0;
  ::waitpid(caller, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(static_cast<ErrorKind>(WEXITSTATUS(status)), ErrorKind::kAborted);
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
