#include "peal/base/process_state.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "peal/base/testing/idle_child.h"

namespace peal {
namespace {

TEST(ProcessStateTest, AProcessThatIsStoppedIsToldFromOneThatRuns) {
  const IdleChild child;
  EXPECT_EQ(state_of_process(child.pid()), ProcessState::kRunning);
  child.signal_and_wait(SIGSTOP, WSTOPPED);
  EXPECT_EQ(state_of_process(child.pid()), ProcessState::kStopped);
  child.signal_and_wait(SIGCONT, WCONTINUED);
  EXPECT_EQ(state_of_process(child.pid()), ProcessState::kRunning);
}

TEST(ProcessStateTest, OneThatHasEndedIsAZombieUntilItsParentKnows) {
  IdleChild child;
  child.signal_and_wait(SIGKILL, WEXITED);
  EXPECT_EQ(state_of_process(child.pid()), ProcessState::kZombie);
  child.end();
  EXPECT_EQ(state_of_process(child.pid()), ProcessState::kMissing);
}

TEST(ProcessStateTest, ParentsAndTheirParentsAreAncestorsAndNobodyElse) {
  IdleChild child;
  EXPECT_TRUE(is_ancestor(::getpid(), child.pid()));
  EXPECT_TRUE(is_ancestor(::getppid(), child.pid()));
  EXPECT_FALSE(is_ancestor(child.pid(), ::getpid()));
  EXPECT_FALSE(is_ancestor(::getpid(), ::getpid()));
  EXPECT_FALSE(is_ancestor(0, ::getpid()));
  const pid_t ended = child.pid();
  child.signal_and_wait(SIGKILL, WEXITED);
  child.end();
  EXPECT_FALSE(is_ancestor(::getpid(), ended));
}

TEST(ProcessStateTest, NoProcessHasTheNumberZero) {
  EXPECT_EQ(state_of_process(0), ProcessState::kMissing);
}

}  // namespace
}  // namespace peal
