#include "peal/backends/native/patience.h"

#include <thread>

#include <gtest/gtest.h>

namespace peal::native {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// How long one wait goes on where one yield takes as long as `each`.
Duration time_of_yields(Duration each) {
  YieldLimit limit;
  TimePoint now;
  while (limit.allows_another(now)) now += each;
  return now - TimePoint();
}

TEST(YieldLimitTest, AWaitYieldsAHundredTimesWhereTheCoreComesBackSoon) {
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

TEST(PatienceTest, ADeadlineCheckIsDueAfterTheFirstYieldAndAfterEachLongOne) {
  Patience patience(Cores::kShared);
  EXPECT_FALSE(patience.is_time_for_deadline()) << "it has not yielded yet";
  for (int yield = 0; yield < 3; ++yield) {
    ASSERT_TRUE(patience.wait());
    EXPECT_TRUE(patience.is_time_for_deadline());
    patience.renew();
    EXPECT_FALSE(patience.is_time_for_deadline());
    std::this_thread::sleep_for(milliseconds(30));
  }
}

TEST(PatienceTest, ADeadlineCheckIsDueEvery256Polls) {
  Patience patience(Cores::kOwn);
  int checks = 0;
  for (int poll = 0; poll < 1024; ++poll) {
    checks += patience.is_time_for_deadline() ? 1 : 0;
    patience.renew();
  }
  EXPECT_EQ(checks, 4);
}

}  // namespace
}  // namespace peal::native
