#include "peal/base/difference.h"

#include <array>
#include <string_view>

#include <gtest/gtest.h>

namespace peal {
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

TEST(DifferenceTest, HyphensBeforeAWordDoNotMakeWordsSimilar) {
  constexpr std::array<std::string_view, 2> kOptions = {"--help", "--log-dir"};
  EXPECT_EQ(nearest_word("--lr", kOptions), "");
  EXPECT_EQ(nearest_word("-log-dir", kOptions), "--log-dir");
  EXPECT_EQ(nearest_word("--", kOptions), "");
}

TEST(DifferenceTest, TheNearestWordIsTheFirstOfThoseThatDifferLeast) {
  constexpr std::array<std::string_view, 3> kKnown = {"nodes", "notes", "image"};
  EXPECT_EQ(nearest_word("nods", kKnown), "nodes");
  EXPECT_EQ(nearest_word("noxes", kKnown), "nodes");
  EXPECT_EQ(nearest_word("imag", kKnown), "image");
  EXPECT_EQ(nearest_word("xyz", kKnown), "");
  EXPECT_EQ(nearest_word("nodes", {}), "");
}

}  // namespace
}  // namespace peal
