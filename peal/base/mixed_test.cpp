#include "peal/base/mixed.h"

#include <gtest/gtest.h>

namespace peal {
namespace {

TEST(MixedTest, TheNumbersAreThoseOfSplitMix64) {
  EXPECT_EQ(mixed(0, 0), 0xe220'a839'7b1d'cdafu);
  EXPECT_EQ(mixed(0x9e37'79b9'7f4a'7c15u, 0), 0x6e78'9e6a'a1b9'65f4u);
}

TEST(MixedTest, TheOrderOfTheWordsCounts) {
  EXPECT_NE(mixed(mixed(0, 1), 2), mixed(mixed(0, 2), 1));
  EXPECT_NE(mixed(mixed(0, 1), 2), mixed(mixed(0, 0), 3));
}

}  // namespace
}  // namespace peal
