// Tests how many strangers a listener accepts, and what it reports about them.
#include "peal/net/accept_limiter.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AcceptLimiterTest : public ::testing::Test {
 protected:
  void drop(int count, const Address& from = Address::parse("10.0.0.1:4711")) {
    for (int i = 0; i < count; ++i) accept_limiter_.dropped(from, "no proof", now_);
  }

  bool is_paused(const std::string& from) const {
    return accept_limiter_.is_paused(Address::parse(from), now_);
  }

  bool may_accept(std::size_t half_open = 0) const {
    return accept_limiter_.may_accept(half_open, now_);
  }

  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
  std::vector<std::string> reports_;
  AcceptLimiter accept_limiter_{{.half_open = 4,
                                 .proof = seconds(10),
                                 .proof_in_a_crowd = seconds(1),
                                 .failures = 10,
                                 .report_every = seconds(10)},
                                "the job's store",
                                [this](std::string_view text) { reports_.emplace_back(text); }};
};

TEST_F(AcceptLimiterTest, AFewFailuresInASecondPauseNoAddress) {
  for (int second = 0; second < 10; ++second) {
    drop(9);
    EXPECT_FALSE(is_paused("10.0.0.1:1"));
    now_ += seconds(1);
  }
}

TEST_F(AcceptLimiterTest, ManyFailuresInASecondPauseTheirAddressForTheRestOfIt) {
  drop(5);
  now_ += milliseconds(400);
  drop(5);
  EXPECT_TRUE(is_paused("10.0.0.1:1")) << "for every port";
  now_ += milliseconds(599);
  EXPECT_TRUE(is_paused("10.0.0.1:1"));
  now_ += milliseconds(1);
  EXPECT_FALSE(is_paused("10.0.0.1:1"));
}

TEST_F(AcceptLimiterTest, FailuresOfOneAddressDoNotPauseAnother) {
  for (int i = 0; i < 20; ++i) drop(9, Address::parse("10.0.1." + std::to_string(i) + ":1"));
  drop(1000);
  EXPECT_TRUE(is_paused("10.0.0.1:1"));
  for (const char* other : {"10.0.0.2:1", "10.0.1.3:1", "[::1]:1", "unix:@name"}) {
    EXPECT_FALSE(is_paused(other)) << other;
  }
  EXPECT_TRUE(may_accept());
}

TEST_F(AcceptLimiterTest, ARejectedConnectionCountsAgainstNoAddress) {
  for (int i = 0; i < 1000; ++i) accept_limiter_.closed_unread("another user's", now_);
  EXPECT_TRUE(may_accept());
  EXPECT_FALSE(is_paused("unix:@name"));
  EXPECT_THAT(reports_, ElementsAre(HasSubstr("another user's")));
}

TEST_F(AcceptLimiterTest, AtTheLimitNewConnectionsWaitAndOldOnesHaveLessTime) {
  EXPECT_TRUE(may_accept(3));
  EXPECT_EQ(accept_limiter_.proof_timeout(3), seconds(10));
  EXPECT_FALSE(may_accept(4));
  EXPECT_EQ(accept_limiter_.proof_timeout(4), seconds(1));
}

TEST_F(AcceptLimiterTest, TheFirstIsReportedAtOnceAndLaterOnesAsACount) {
  drop(1);
  EXPECT_THAT(reports_,
              ElementsAre(HasSubstr("dropped a connection to the job's store: no proof")));
  now_ += seconds(5);
  drop(7);
  EXPECT_EQ(reports_.size(), 1U);
  now_ += seconds(6);
  drop(1);
  ASSERT_EQ(reports_.size(), 2U);
  EXPECT_THAT(reports_.back(), HasSubstr("and 7 before it"));
}

TEST_F(AcceptLimiterTest, AFailedAcceptPausesTheListenerShortly) {
  accept_limiter_.accept_failed(now_);
  EXPECT_FALSE(may_accept());
  now_ += milliseconds(100);
  EXPECT_TRUE(may_accept());
}

}  // namespace
}  // namespace peal::net
