#include "peal/base/clock.h"

#include <gtest/gtest.h>

namespace peal {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

const TimePoint kNow = TimePoint() + hours(1000);

TEST(DeadlineTest, ADeadlineHasPassedFromItsTimeOn) {
  const Deadline deadline(kNow);
  EXPECT_FALSE(deadline.passed(kNow - Duration(1)));
  EXPECT_TRUE(deadline.passed(kNow));
}

TEST(DeadlineTest, TheTimeLeftIsRoundedUpAndNeverNegative) {
  const Deadline deadline(kNow);
  EXPECT_EQ(deadline.left(kNow - microseconds(1)), milliseconds(1));
  EXPECT_EQ(deadline.left(kNow), milliseconds(0));
  EXPECT_EQ(deadline.left(kNow + hours(1)), milliseconds(0));
}

TEST(DeadlineTest, AnEndlessTimeoutDoesNotOverflow) {
  const Deadline deadline = Deadline::after(Timeout::max());
  EXPECT_EQ(deadline.at(), TimePoint::max());
  EXPECT_FALSE(deadline.passed());
}

TEST(DeadlineTest, AZeroTimeoutHasPassed) { EXPECT_TRUE(Deadline::after(Timeout(0)).passed()); }

TEST(DeadlineTest, ASliceNeverExceedsTheDeadline) {
  const Deadline deadline(kNow + milliseconds(10));
  EXPECT_EQ(deadline.within(milliseconds(3), kNow).at(), kNow + milliseconds(3));
  EXPECT_EQ(deadline.within(milliseconds(30), kNow).at(), deadline.at());
  EXPECT_EQ(Deadline(TimePoint::max()).within(milliseconds(3), kNow).at(), kNow + milliseconds(3));
}

}  // namespace
}  // namespace peal
