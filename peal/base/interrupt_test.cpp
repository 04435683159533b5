#include "peal/base/interrupt.h"

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal {
namespace {

using std::chrono::milliseconds;

const auto kNever = [](Deadline until) {
  std::this_thread::sleep_until(until.at());
  return false;
};

[[noreturn]] void ctrl_c() { throw std::runtime_error("Ctrl-C"); }

TEST(InterruptTest, AnInterruptEndsAWaitLongBeforeItsDeadline) {
  const TimePoint begin = Clock::now();
  EXPECT_THROW(wait_or_interrupt(Deadline::after(std::chrono::minutes(5)), ctrl_c, kNever),
               Interrupted);
  EXPECT_LT(Clock::now() - begin, std::chrono::minutes(1));
}

TEST(InterruptTest, TheExceptionIsKept) {
  try {
    let_interrupt(ctrl_c);
    FAIL();
  } catch (const Interrupted& interrupted) {
    EXPECT_THROW(std::rethrow_exception(interrupted.cause), std::runtime_error);
    EXPECT_STREQ(error_of(interrupted).what(), "aborted: an interrupt threw: Ctrl-C");
  }
}

TEST(InterruptTest, RetryLoopsDoNotCatchAnInterrupt) {
  const Interrupt interrupt = [] { throw Error(ErrorKind::kPeerLost, "Ctrl-C"); };
  const auto try_twice = [&] {
    for (int i = 0; i < 2; ++i) {
      try {
        let_interrupt(interrupt);
      } catch (const std::exception&) {
        continue;
      }
    }
  };
  EXPECT_THROW(try_twice(), Interrupted);
}

TEST(InterruptTest, AWaitThatEndsAtOnceIsNotInterrupted) {
  EXPECT_TRUE(wait_or_interrupt(Deadline(TimePoint::max()), ctrl_c, [](Deadline) { return true; }));
}

TEST(InterruptTest, AWaitWithoutAnInterruptEndsAtItsDeadline) {
  int asked = 0;
  const TimePoint begin = Clock::now();
  EXPECT_FALSE(wait_or_interrupt(
      Deadline::after(Timeout(120)), [&] { ++asked; }, kNever));
  EXPECT_GE(Clock::now() - begin, milliseconds(120));
  EXPECT_LE(asked, 2);
  EXPECT_FALSE(wait_or_interrupt(Deadline::after(Timeout(1)), {}, kNever));
}

}  // namespace
}  // namespace peal
