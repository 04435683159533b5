#include "peal/engine/pace.h"

#include <gtest/gtest.h>

namespace peal::engine {
namespace {

constexpr auto kBegun = Pace::Receiving::kBegun;

TEST(PaceTest, SendingMayRunAheadByTheLimit) {
  Pace pace;
  EXPECT_EQ(pace.allowance(kBegun), Pace::kLimit);
  pace.sent(Pace::kLimit);
  EXPECT_EQ(pace.allowance(kBegun), 0_B);
  pace.received(4_KiB);
  EXPECT_EQ(pace.allowance(kBegun), 4_KiB);
}

TEST(PaceTest, BeforeTheFirstByteEachCheckAllowsTheLimit) {
  Pace pace;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(pace.allowance(Pace::Receiving::kNotBegun), Pace::kLimit);
    pace.sent(Pace::kLimit);
  }
}

TEST(PaceTest, BytesSentWithoutALimitCountToo) {
  Pace pace;
  pace.sent(Pace::kLimit * 3);
  EXPECT_EQ(pace.allowance(kBegun), 0_B);
  pace.received(Pace::kLimit * 3);
  EXPECT_EQ(pace.allowance(kBegun), Pace::kLimit);
}

TEST(PaceTest, EachRaiseDoublesTheLimitUntilItIsUnlimited) {
  Pace pace;
  pace.raise_limit();
  EXPECT_EQ(pace.allowance(kBegun), Pace::kLimit * 2);
  for (int i = 0; i < 64; ++i) pace.raise_limit();
  pace.sent(Pace::kUnlimited / 4);
  pace.sent(Pace::kUnlimited / 4);
  EXPECT_EQ(pace.allowance(kBegun), Pace::kUnlimited);
}

TEST(PaceTest, BeginResetsThePace) {
  Pace pace;
  pace.sent(1_MiB);
  pace.raise_limit();
  pace.begin();
  EXPECT_EQ(pace.allowance(kBegun), Pace::kLimit);
}

}  // namespace
}  // namespace peal::engine
