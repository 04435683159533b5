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

TEST(StopSignalsTest, SignalsOfTimeoutCountOnce) {
  const StopSignals signals;
  ::raise(SIGTERM);
  ::raise(SIGTERM);
  EXPECT_EQ(signals.number(), SIGTERM);
}

TEST(StopSignalsDeathTest, ASecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        const StopSignals signals;
        ::raise(SIGTERM);
        std::this_thread::sleep_for(std::chrono::milliseconds(1100));
        ::raise(SIGTERM);
      },
      ::testing::KilledBySignal(SIGTERM),
      "");
}

}  // namespace
}  // namespace peal
