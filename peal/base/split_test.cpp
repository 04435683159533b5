#include "peal/base/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal {
namespace {

using testing::ElementsAre;

TEST(SplitTest, ThereIsOnePartMoreThanThereAreSeparators) {
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split("one", ','), ElementsAre("one"));
  EXPECT_THAT(split("one,two", ','), ElementsAre("one", "two"));
}

TEST(SplitTest, EmptyPartsCount) {
  EXPECT_THAT(split(",a,,b,", ','), ElementsAre("", "a", "", "b", ""));
}

TEST(SplitTest, OtherSeparatorsAreOrdinaryText) {
  EXPECT_THAT(split("a,b;c", ';'), ElementsAre("a,b", "c"));
}

}  // namespace
}  // namespace peal
