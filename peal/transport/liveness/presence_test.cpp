#include "peal/transport/liveness/presence.h"

#include <signal.h>
#include <sys/wait.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/idle_child.h"

namespace peal::transport {
namespace {

using State = Presence::State;
using ::testing::HasSubstr;

TEST(PresenceTest, AStoppedProcessIsDistinguishedFromARunningOne) {
  const IdleChild child;
  EXPECT_EQ(presence_of_process(child.pid()).state, State::kRunning);
  child.signal_and_wait(SIGSTOP, WSTOPPED);
  EXPECT_EQ(presence_of_process(child.pid()).state, State::kStopped);
  child.signal_and_wait(SIGCONT, WCONTINUED);
  EXPECT_EQ(presence_of_process(child.pid()).state, State::kRunning);
}

TEST(PresenceTest, AProcessHasEndedBeforeItsParentKnows) {
  const IdleChild child;
  child.signal_and_wait(SIGKILL, WEXITED);
  EXPECT_EQ(presence_of_process(child.pid()).state, State::kEnded);
}

TEST(PresenceTest, WithoutAVisiblePidNothingIsKnown) {
  EXPECT_EQ(presence_of_process(0).state, State::kUnknown);
}

TEST(PresenceTest, TheTextSaysWhetherThePeerIsStoppedSilentOrUnreachable) {
  using std::chrono::milliseconds;
  EXPECT_THAT(describe({.state = State::kStopped}), HasSubstr("is stopped (by a signal"));
  EXPECT_THAT(describe({.state = State::kSilent, .since = milliseconds(1200)}),
              HasSubstr("sent nothing for 1.2 s"));
  EXPECT_THAT(describe({.state = State::kUnreachable, .since = milliseconds(900)}),
              HasSubstr("0.9 s"));
  EXPECT_EQ(describe({}), "");
}

}  // namespace
}  // namespace peal::transport
