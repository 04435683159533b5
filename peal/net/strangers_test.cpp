// How many strangers a listener bears, and what it reports of them.
#include "peal/net/strangers.h"

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

class StrangersTest : public ::testing::Test {
 protected:
  void drop(int count, const Address& from = Address::parse("10.0.0.1:4711")) {
    for (int i = 0; i < count; ++i) strangers_.dropped(from, "no proof", now_);
  }

  bool is_paused(const std::string& from) const {
    return strangers_.is_paused(Address::parse(from), now_);
  }

  bool lets_in(std::size_t half_open = 0) const { return strangers_.lets_in(half_open, now_); }

  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
  std::vector<std::string> reports_;
  Strangers strangers_{{.half_open = 4,
                        .proof = seconds(10),
                        .proof_in_a_crowd = seconds(1),
                        .failures = 10,
                        .report_every = seconds(10)},
                       "the job's store",
                       [this](Severity, std::string_view text) { reports_.emplace_back(text); }};
};

TEST_F(StrangersTest, AFewFailuresInASecondPauseNoAddress) {
  for (int second = 0; second < 10; ++second) {
    drop(9);
    EXPECT_FALSE(is_paused("10.0.0.1:1"));
    now_ += seconds(1);
  }
}

TEST_F(StrangersTest, ManyFailuresInASecondPauseTheirAddressForTheRestOfIt) {
  drop(5);
  now_ += milliseconds(400);
  drop(5);
  EXPECT_TRUE(is_paused("10.0.0.1:1")) << "whatever its port";
  now_ += milliseconds(599);
  EXPECT_TRUE(is_paused("10.0.0.1:1"));
  now_ += milliseconds(1);
  EXPECT_FALSE(is_paused("10.0.0.1:1"));
}

TEST_F(StrangersTest, TheFailuresOfAnAddressPauseNoOtherAddress) {
  for (int i = 0; i < 20; ++i) drop(9, Address::parse("10.0.1." + std::to_string(i) + ":1"));
  drop(1000);
  EXPECT_TRUE(is_paused("10.0.0.1:1"));
  for (const char* other : {"10.0.0.2:1", "10.0.1.3:1", "[::1]:1", "unix:@name"}) {
    EXPECT_FALSE(is_paused(other)) << other;
  }
  EXPECT_TRUE(lets_in());
}

TEST_F(StrangersTest, AConnectionThatIsTurnedAwayCountsAgainstNoAddress) {
  for (int i = 0; i < 1000; ++i) strangers_.turned_away("another user's", now_);
  EXPECT_TRUE(lets_in());
  EXPECT_FALSE(is_paused("unix:@name"));
  EXPECT_THAT(reports_, ElementsAre(HasSubstr("another user's")));
}

TEST_F(StrangersTest, ACrowdKeepsNewOnesOutAndHasLittleTime) {
  EXPECT_TRUE(lets_in(3));
  EXPECT_EQ(strangers_.patience(3), seconds(10));
  EXPECT_FALSE(lets_in(4));
  EXPECT_EQ(strangers_.patience(4), seconds(1));
}

TEST_F(StrangersTest, TheFirstIsReportedAtOnceAndTheOthersByTheirNumberNowAndThen) {
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

TEST_F(StrangersTest, WhereThereIsNoRoomNobodyComesInForAMoment) {
  strangers_.could_not_let_in(now_);
  EXPECT_FALSE(lets_in());
  now_ += milliseconds(100);
  EXPECT_TRUE(lets_in());
}

}  // namespace
}  // namespace peal::net
