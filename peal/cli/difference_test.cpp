#include "peal/cli/difference.h"

#include <gtest/gtest.h>

namespace peal::cli {
namespace {

TEST(DifferenceTest, TheDifferenceIsTheShareOfLettersThatMustChange) {
  EXPECT_EQ(difference("", ""), 0);
  EXPECT_EQ(difference("run", "run"), 0);
  EXPECT_EQ(difference("", "run"), 1);
  EXPECT_EQ(difference("fly", "run"), 1);
  EXPECT_DOUBLE_EQ(difference("rn", "run"), 1.0 / 3);    // insert
  EXPECT_DOUBLE_EQ(difference("ruin", "run"), 1.0 / 4);  // remove
  EXPECT_DOUBLE_EQ(difference("rum", "run"), 1.0 / 3);   // replace
  EXPECT_DOUBLE_EQ(difference("kitten", "sitting"), 3.0 / 7);
}

TEST(DifferenceTest, TheDifferenceIsSymmetric) {
  EXPECT_EQ(difference("config", "conf"), difference("conf", "config"));
}

}  // namespace
}  // namespace peal::cli
