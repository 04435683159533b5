#include "peal/base/difference.h"

#include <gtest/gtest.h>

namespace peal {
namespace {

TEST(DifferenceTest, ItIsTheShareOfLettersThatMustBeChanged) {
  EXPECT_EQ(difference("", ""), 0);
  EXPECT_EQ(difference("run", "run"), 0);
  EXPECT_EQ(difference("", "run"), 1);
  EXPECT_EQ(difference("fly", "run"), 1);
  EXPECT_DOUBLE_EQ(difference("rn", "run"), 1.0 / 3);    // put in
  EXPECT_DOUBLE_EQ(difference("ruin", "run"), 1.0 / 4);  // left out
  EXPECT_DOUBLE_EQ(difference("rum", "run"), 1.0 / 3);   // exchanged
  EXPECT_DOUBLE_EQ(difference("kitten", "sitting"), 3.0 / 7);
}

TEST(DifferenceTest, ItIsTheSameBothWays) {
  EXPECT_EQ(difference("config", "conf"), difference("conf", "config"));
}

}  // namespace
}  // namespace peal
