// How many strangers a door bears, and what it says of them.
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
  void drop(int count) {
    for (int i = 0; i < count; ++i) strangers_.dropped("no proof", now_);
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

TEST_F(StrangersTest, AFewInASecondKeepNobodyOut) {
  for (int second = 0; second < 10; ++second) {
    drop(9);
    EXPECT_TRUE(lets_in());
    now_ += seconds(1);
  }
}

TEST_F(StrangersTest, ManyInASecondKeepEverybodyOutForTheRestOfIt) {
  drop(5);
  now_ += milliseconds(400);
  drop(5);
  EXPECT_FALSE(lets_in());
  now_ += milliseconds(599);
  EXPECT_FALSE(lets_in());
  now_ += milliseconds(1);
  EXPECT_TRUE(lets_in());
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
