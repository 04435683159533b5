#include "peal/observe/rank_end.h"

#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::observe {
namespace {

RankEnd killed() {
  return {.rank = 3,
          .pid = 4711,
          .at = WallTime(std::chrono::nanoseconds(1764000000123456789)),
          .state = RankEnd::State::kKilled,
          .text = "was killed by SIGKILL"};
}

TEST(RankEndTest, ALineSaysHowARankEnded) {
  EXPECT_EQ(to_line(killed()), "3 4711 1764000000123456789 killed was killed by SIGKILL");
}

TEST(RankEndTest, ALineReadsBackAsWritten) {
  for (const RankEnd::State state : kAllRankStates) {
    RankEnd end = killed();
    end.state = state;
    EXPECT_EQ(parse_rank_end(to_line(end) + "\n"), end) << name_of(state);
    end.text = "";
    EXPECT_EQ(parse_rank_end(to_line(end)), end) << name_of(state);
  }
}

TEST(RankEndTest, ATextStaysOnOneLine) {
  RankEnd end = killed();
  end.text = "said\nmore";
  EXPECT_EQ(parse_rank_end(to_line(end)).text, "said more");
}

TEST(RankEndTest, AMalformedLineIsAMismatch) {
  for (const char* line : {"",
                           "3",
                           "3 4711",
                           "3 4711 12 ended_somehow text",
                           "-1 4711 12 runs ",
                           "3 x 12 runs ",
                           "3 4711 99999999999999999999 runs ",
                           "99999999 4711 12 runs ",
                           "3 4711 12 runs two\nlines"}) {
    EXPECT_THROW(parse_rank_end(line), Error) << line;
  }
}

TEST(RankEndTest, ControlCharactersAreEscapedWhenWrittenAndRejectedWhenRead) {
  RankEnd end = parse_rank_end("3 7 5 ended_badly text");
  end.text =
      "left\xc2\x9b"
      "2J";
  EXPECT_EQ(to_line(end), "3 7 5 ended_badly left\\xc2\\x9b2J");
  for (const std::string text : {"\xc2\x9b"
                                 "2J",
                                 "\x1b[2J",
                                 "\x9b"}) {
    EXPECT_THROW(parse_rank_end("3 7 5 ended_badly left" + text), Error) << text;
  }
}

TEST(RankEndTest, ALongTextIsCutBetweenCharacters) {
  RankEnd end = parse_rank_end("3 7 5 ended_badly text");
  end.text = "x";
  while (end.text.size() < 2000) end.text += "\xe2\x82\xac";
  const RankEnd read = parse_rank_end(to_line(end));
  EXPECT_EQ(read.text, end.text.substr(0, 1 + 341 * 3));
}

}  // namespace
}  // namespace peal::observe
