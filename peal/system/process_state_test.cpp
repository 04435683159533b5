#include "peal/system/process_state.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "peal/base/testing/idle_child.h"

namespace peal {
namespace {

TEST(ProcessStateTest, AStoppedProcessIsDistinguishedFromARunningOne) {
  const IdleChild child;
  EXPECT_EQ(state_of_process(child.pid()), ProcessState::kRunning);
  child.signal_and_wait(SIGSTOP, WSTOPPED);
  EXPECT_EQ(state_of_process(child.pid()), ProcessState::kStopped);
  child.signal_and_wait(SIGCONT, WCONTINUED);
  EXPECT_EQ(state_of_process(child.pid()), ProcessState::kRunning);
}

TEST(ProcessStateTest, AProcessThatHasEndedIsAZombieUntilItIsReaped) {
  IdleChild child;
  child.signal_and_wait(SIGKILL, WEXITED);
  EXPECT_EQ(state_of_process(child.pid()), ProcessState::kZombie);
  child.end();
  EXPECT_EQ(state_of_process(child.pid()), ProcessState::kMissing);
}

TEST(ProcessStateTest, OnlyParentsAndTheirParentsAreAncestors) {
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

TEST(ProcessStateTest, TheStartTimeTellsAProcessFromALaterOne) {
  IdleChild child;
  const auto own = start_time_of_process(::getpid());
  const auto of_child = start_time_of_process(child.pid());
  ASSERT_TRUE(own && of_child);
  EXPECT_EQ(start_time_of_process(::getpid()), own);
  EXPECT_GE(*of_child, *own);
  EXPECT_GT(*own, start_time_of_process(1).value_or(0));
}

TEST(ProcessStateTest, AProcessThatHasEndedHasNoStartTime) {
  IdleChild child;
  child.signal_and_wait(SIGKILL, WEXITED);
  EXPECT_FALSE(start_time_of_process(child.pid()));  // a zombie
  const pid_t ended = child.pid();
  child.end();
  EXPECT_FALSE(start_time_of_process(ended));
  EXPECT_FALSE(start_time_of_process(0));
}

TEST(ProcessStateTest, NoProcessHasTheNumberZero) {
  EXPECT_EQ(state_of_process(0), ProcessState::kMissing);
}

TEST(ProcessStateTest, AWaitStatusIsDescribedInWords) {
  EXPECT_EQ(describe_wait_status(W_EXITCODE(3, 0)), "ended with exit code 3");
  EXPECT_EQ(describe_wait_status(W_EXITCODE(0, SIGKILL)), "was killed by SIGKILL");
  EXPECT_EQ(describe_wait_status(W_EXITCODE(0, 99)), "was killed by signal 99");
}

}  // namespace
}  // namespace peal
