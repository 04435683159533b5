#include "peal/system/stop_signals.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "peal/base/testing/in_child.h"

namespace peal {
namespace {

auto handler_of(int number) {
  struct sigaction action = {};
  ::sigaction(number, nullptr, &action);
  return action.sa_handler;
}

TEST(StopSignalsTest, ASignalIsNotedAndTheDefaultComesBack) {
  for (const int number : {SIGINT, SIGTERM}) {
    const StopSignals signals;
    EXPECT_EQ(signals.number(), 0);
    ::raise(number);
    EXPECT_EQ(signals.number(), number);
  }
  { const StopSignals unused; }
  EXPECT_EQ(handler_of(SIGINT), SIG_DFL);
  EXPECT_EQ(handler_of(SIGTERM), SIG_DFL);
}

TEST(StopSignalsTest, TheDefaultActionOfEverySignalIsRestored) {
  {
    const StopSignals signals({SIGQUIT});
    ::raise(SIGQUIT);
    EXPECT_EQ(signals.number(), SIGQUIT);
  }
  EXPECT_EQ(handler_of(SIGQUIT), SIG_DFL);
}

TEST(StopSignalsTest, TheLastOfSeveralObjectsRestoresTheDefault) {
  auto first = std::make_unique<StopSignals>();
  auto second = std::make_unique<StopSignals>();
  first.reset();
  ::raise(SIGTERM);
  EXPECT_EQ(second->number(), SIGTERM);
  EXPECT_EQ(StopSignals().number(), SIGTERM) << "while another object lives, its signal counts";
  second.reset();
  EXPECT_EQ(handler_of(SIGTERM), SIG_DFL);
  EXPECT_EQ(StopSignals().number(), 0);
}

TEST(StopSignalsTest, ASignalThatTheProgramHandlesOrIgnoresStaysWithIt) {
  const auto ignored = ::signal(SIGINT, SIG_IGN);
  const auto handled = ::signal(SIGTERM, [](int) {});
  {
    const StopSignals signals;
    ::raise(SIGINT);
    ::raise(SIGTERM);
    EXPECT_EQ(signals.number(), 0);
  }
  EXPECT_EQ(handler_of(SIGINT), SIG_IGN);
  EXPECT_NE(handler_of(SIGTERM), SIG_DFL);
  ::signal(SIGINT, ignored);
  ::signal(SIGTERM, handled);
}

TEST(StopSignalsTest, AForkedChildEndsBySigterm) {
  const StopSignals signals;
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGTERM);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_EQ(signals.number(), 0);
}

TEST(StopSignalsTest, AForkedChildNotesSignalsForAnObjectOfItsOwn) {
  const StopSignals signals;
  EXPECT_EQ(in_child([] {
              const StopSignals own;
              ::raise(SIGTERM);
              return own.number() == SIGTERM ? 0 : 1;
            }),
            0);
  EXPECT_EQ(signals.number(), 0);
}

/// Whether a signal repeats the request of a SIGTERM. `after`: the time between the two signals.
bool repeats_sigterm(std::chrono::milliseconds after, int number, bool is_of_terminal = false) {
  const TimePoint begin(std::chrono::hours(1));
  return is_repeated({.number = SIGTERM, .at = begin},
                     {.number = number, .is_of_terminal = is_of_terminal, .at = begin + after});
}

TEST(StopSignalsTest, TheSameSignalOfAProcessRepeatsTheRequestForOneSecond) {
  using std::chrono::milliseconds;
  EXPECT_TRUE(repeats_sigterm(milliseconds(0), SIGTERM));
  EXPECT_TRUE(repeats_sigterm(milliseconds(999), SIGTERM));
  EXPECT_FALSE(repeats_sigterm(milliseconds(1000), SIGTERM));
  EXPECT_FALSE(repeats_sigterm(milliseconds(0), SIGINT));
  EXPECT_FALSE(repeats_sigterm(milliseconds(0), SIGTERM, true));
}

TEST(StopSignalsTest, SighupIsNotedOnDemandAndIsNeverASecondRequest) {
  const StopSignals signals({SIGTERM, SIGHUP});
  ::raise(SIGHUP);
  ::raise(SIGHUP);
  EXPECT_EQ(signals.number(), SIGHUP);
}

TEST(StopSignalsTest, CtrlCIsAnsweredOnDemand) {
  ::testing::internal::CaptureStderr();
  {
    const StopSignals signals({SIGINT, SIGTERM}, "wait\n");
    ::raise(SIGINT);
  }
  {
    const StopSignals signals({SIGINT, SIGTERM}, "not for others\n");
    ::raise(SIGTERM);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "wait\n");
}

TEST(StopSignalsTest, ARepeatedRequestDoesNotEndTheProcess) {
  const TimePoint begin = Clock::now();
  const bool lives = holds_in_child([] {
    const StopSignals signals;
    ::raise(SIGTERM);
    ::raise(SIGTERM);
    return signals.number() == SIGTERM;
  });
  // On a busy machine, the second signal may come so late that it is a second request.
  EXPECT_TRUE(lives || Clock::now() - begin >= kOneRequest);
}

TEST(StopSignalsDeathTest, ASecondRequestEndsTheProcess) {
  const auto ends = ::testing::KilledBySignal(SIGTERM);
  const auto raise_both = [](int first, int second) {
    const StopSignals signals;
    ::raise(first);
    ::raise(second);
  };
  EXPECT_EXIT(raise_both(SIGINT, SIGTERM), ends, "");
  const auto raise_until_it_ends = [] {
    const StopSignals signals;
    for (const Deadline end = Deadline::after(std::chrono::minutes(2)); !end.passed();) {
      ::raise(SIGTERM);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
  EXPECT_EXIT(raise_until_it_ends(), ends, "");
}

}  // namespace
}  // namespace peal
