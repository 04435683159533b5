// What /proc tells of a process.
#include "peal/transport/presence.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::transport {
namespace {

using State = Presence::State;
using ::testing::HasSubstr;

/// A child that does nothing until it is killed.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::alarm(60);
    while (true) ::pause();
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void signal_and_wait(int signal, int options) const {
    ::kill(pid_, signal);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, options | WNOWAIT);
  }

 private:
  pid_t pid_;
};

TEST(PresenceTest, AProcessThatIsStoppedIsToldFromOneThatRuns) {
  const Child child;
  EXPECT_EQ(presence_of_process(child.pid()).state, State::kRunning);
  child.signal_and_wait(SIGSTOP, WSTOPPED);
  EXPECT_EQ(presence_of_process(child.pid()).state, State::kStopped);
  child.signal_and_wait(SIGCONT, WCONTINUED);
  EXPECT_EQ(presence_of_process(child.pid()).state, State::kRunning);
}

TEST(PresenceTest, AProcessHasEndedBeforeItsParentKnows) {
  const Child child;
  child.signal_and_wait(SIGKILL, WEXITED);
  EXPECT_EQ(presence_of_process(child.pid()).state, State::kEnded);
}

TEST(PresenceTest, NothingIsKnownOfAProcessWithoutANumberHere) {
  EXPECT_EQ(presence_of_process(0).state, State::kUnknown);
}

TEST(PresenceTest, WordsSayWhetherThereIsHope) {
  using std::chrono::milliseconds;
  EXPECT_THAT(describe({.state = State::kStopped}),
              HasSubstr("stands still (its process is stopped"));
  EXPECT_THAT(describe({.state = State::kSilent, .since = milliseconds(1200)}),
              HasSubstr("said nothing for 1.2 s"));
  EXPECT_THAT(describe({.state = State::kUnreachable, .since = milliseconds(900)}),
              HasSubstr("0.9 s"));
  EXPECT_EQ(describe({}), "");
}

}  // namespace
}  // namespace peal::transport
