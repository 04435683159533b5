#include "peal/base/count_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"

namespace peal {
namespace {

TEST(CountRangeTest, ARangeHasTheLeastAndTheMost) {
  const auto range = parse_count_range("2:4", "-n", "ranks");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->least, 2);
  EXPECT_EQ(range->most, 4);
}

TEST(CountRangeTest, AnythingElseIsLeftToTheCaller) {
  for (const char* const text : {"", "2", "-2", "-2:4", "gpu"}) {
    EXPECT_FALSE(parse_count_range(text, "-n", "ranks")) << text;
  }
}

TEST(CountRangeTest, AnErrorShowsTheRightForm) {
  EXPECT_EQ(
      error_of([] { parse_count_range("4:2", "-n", "ranks"); }).message(),
      "-n \"4:2\": it takes the least and the most ranks of an elastic job, in this order, as "
      "in 2:4; 4 is more than 2");
  for (const char* const text : {":", "2:", ":4", "2-4", "2,4", "0:2", "2:4:6", "two:four"}) {
    EXPECT_THAT(error_of([&] { parse_count_range(text, "-n", "ranks"); }).message(),
                testing::EndsWith("as in 2:4"))
        << text;
  }
}

}  // namespace
}  // namespace peal
