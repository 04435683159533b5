#include "peal/backends/native/patience.h"

#include <gtest/gtest.h>

namespace peal::native {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// How long one wait yields where each yield takes so long.
Duration time_of_yields(Duration each) {
  YieldLimit limit;
  TimePoint now;
  while (limit.allows_another(now)) now += each;
  return now - TimePoint();
}

TEST(YieldLimitTest, AWaitYieldsAHundredTimesWhereTheCoreComesBackSoon) {
  EXPECT_EQ(time_of_yields(microseconds(1)), microseconds(100));
}

TEST(YieldLimitTest, OnACrowdedMachineItIsOneYieldLateAtMost) {
  for (const milliseconds each : {milliseconds(3), milliseconds(10), milliseconds(100)}) {
    EXPECT_LT(time_of_yields(each), milliseconds(20) + each);
  }
}

TEST(YieldLimitTest, EachWaitHasItsOwnLimit) {
  YieldLimit limit;
  TimePoint now;
  for (int wait = 0; wait < 3; ++wait) {
    EXPECT_TRUE(limit.allows_another(now));
    EXPECT_FALSE(limit.has_taken_long(now));
    now += milliseconds(30);
    EXPECT_TRUE(limit.has_taken_long(now));
    EXPECT_FALSE(limit.allows_another(now));
    limit.renew();
    EXPECT_FALSE(limit.has_taken_long(now));
  }
}

}  // namespace
}  // namespace peal::native
