#include "peal/backends/native/backoff.h"

#include <thread>

#include <gtest/gtest.h>

namespace peal::native {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// How long one wait yields if each yield takes `each`.
Duration time_of_yields(Duration each) {
  YieldLimit limit;
  TimePoint now;
  while (limit.allows_another(now)) now += each;
  return now - TimePoint();
}

TEST(YieldLimitTest, AWaitYieldsAHundredTimesIfYieldsAreShort) {
  EXPECT_EQ(time_of_yields(microseconds(1)), microseconds(100));
}

TEST(YieldLimitTest, OnACrowdedMachineAWaitEndsWithTheFirstYieldPast20Milliseconds) {
  for (const milliseconds each : {milliseconds(3), milliseconds(10), milliseconds(100)}) {
    EXPECT_LT(time_of_yields(each), milliseconds(20) + each);
  }
}

TEST(YieldLimitTest, EachWaitHasItsOwnLimit) {
  YieldLimit limit;
  TimePoint now;
  for (int wait = 0; wait < 3; ++wait) {
    EXPECT_TRUE(limit.allows_another(now));
    now += milliseconds(30);
    EXPECT_FALSE(limit.allows_another(now));
    limit.renew();
  }
}

TEST(BackoffTest, ADeadlineCheckIsDueAfterTheFirstYieldAndAfterEachLongOne) {
  Backoff backoff(Cores::kShared);
  EXPECT_FALSE(backoff.is_time_for_deadline()) << "it has not yielded yet";
  for (int yield = 0; yield < 3; ++yield) {
    ASSERT_TRUE(backoff.wait());
    EXPECT_TRUE(backoff.is_time_for_deadline());
    backoff.renew();
    EXPECT_FALSE(backoff.is_time_for_deadline());
    std::this_thread::sleep_for(milliseconds(30));
  }
}

TEST(BackoffTest, ADeadlineCheckIsDueEvery256Polls) {
  Backoff backoff(Cores::kOwn);
  int checks = 0;
  for (int poll = 0; poll < 1024; ++poll) {
    checks += backoff.is_time_for_deadline() ? 1 : 0;
    backoff.renew();
  }
  EXPECT_EQ(checks, 4);
}

}  // namespace
}  // namespace peal::native
