#include "peal/launch/line_splitter.h"

#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Splits the concatenated pieces. A line that ends in a return gets a "<".
std::vector<std::string> split(const std::vector<std::string>& pieces) {
  std::vector<std::string> lines;
  LineSplitter splitter([&](LineEnd end, std::string_view line) {
    lines.push_back(std::string(line) + (end == LineEnd::kReturn ? "<" : ""));
  });
  for (const std::string& piece : pieces) splitter.feed(piece);
  splitter.finish();
  EXPECT_EQ(splitter.unfinished(), "");
  return lines;
}

TEST(LineSplitterTest, LinesComeWholeFromAnyPieces) {
  EXPECT_THAT(split({"one\ntwo\n"}), ElementsAre("one", "two"));
  EXPECT_THAT(split({"o", "ne", "\nt", "wo\n"}), ElementsAre("one", "two"));
  EXPECT_THAT(split({"\n\n"}), ElementsAre("", ""));
  EXPECT_THAT(split({}), IsEmpty());
}

TEST(LineSplitterTest, TheLastLineNeedsNoNewline) {
  EXPECT_THAT(split({"one\ntw", "o"}), ElementsAre("one", "two"));
}

TEST(LineSplitterTest, AReturnEndsALineThatTheNextOneReplaces) {
  EXPECT_THAT(split({"\r10%\r20%\r", "100%\ndone\n"}), ElementsAre("10%<", "20%<", "100%", "done"));
}

TEST(LineSplitterTest, AReturnBeforeANewlineBelongsToTheNewline) {
  EXPECT_THAT(split({"one\r\ntwo\r", "\n\r\n"}), ElementsAre("one", "two", ""));
}

TEST(LineSplitterTest, AReturnAtTheEndOfTheOutputEndsTheLine) {
  EXPECT_THAT(split({"100%\r"}), ElementsAre("100%"));
}

TEST(LineSplitterTest, ATooLongLineIsCut) {
  const std::string longest(LineSplitter::kLongestLine, 'x');
  const auto lines = split({longest, longest + "y\n"});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0] == longest);
  EXPECT_TRUE(lines[1] == longest);
  EXPECT_EQ(lines[2], "y");
}

TEST(LineSplitterTest, TheBordersOfThePiecesMakeNoDifference) {
  std::mt19937 random(4711);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "ab\n\r"[random() % 4];
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      pieces.push_back(text.substr(at, 1 + random() % 5));
      at += pieces.back().size();
    }
    EXPECT_EQ(split(pieces), split({text}));
  }
}

TEST(LineSplitterTest, TheUnfinishedLineIsVisible) {
  LineSplitter splitter([](LineEnd, std::string_view) {});
  splitter.feed("one\nname? ");
  EXPECT_EQ(splitter.unfinished(), "name? ");
}

}  // namespace
}  // namespace peal::launch
