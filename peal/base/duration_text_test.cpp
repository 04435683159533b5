#include "peal/base/duration_text.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace peal {
namespace {

using std::chrono::milliseconds;

TEST(DurationTextTest, ADurationIsANumberWithAUnitOrSeveral) {
  EXPECT_EQ(try_parse_duration("7200s"), milliseconds(7'200'000));
  EXPECT_EQ(try_parse_duration("1.5s"), milliseconds(1500));
  EXPECT_EQ(try_parse_duration("0.25m"), milliseconds(15'000));
  EXPECT_EQ(try_parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(try_parse_duration("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(try_parse_duration("2d1ms"), milliseconds(172'800'001));
  EXPECT_EQ(try_parse_duration("0s"), milliseconds(0));
}

TEST(DurationTextTest, OtherTextsAreRejected) {
  for (const char* const text :
       {"",      "5",     "s",      "-1s",  "5 s",  "5S",
        "30m1h", "1s1s",  "1.s",    ".5s",  "1e3s", "0.0001s",
        "1..5s", "0.5ms", "40000d", "1h30", "5sm",  "99999999999999999999d",
        "5min",  "+5s",   "1.5.5s", "5s ",  "1.-5s"}) {
    EXPECT_EQ(try_parse_duration(text), std::nullopt) << text;
  }
}

TEST(DurationTextTest, ADurationIsReadBack) {
  EXPECT_EQ(duration_text(milliseconds(7'200'000)), "2h");
  EXPECT_EQ(duration_text(milliseconds(5'400'000)), "90m");
  EXPECT_EQ(duration_text(milliseconds(1500)), "1500ms");
  for (std::int64_t count = 0; count < 1'000'000'000; count = count * 3 + 7) {
    EXPECT_EQ(try_parse_duration(duration_text(milliseconds(count))), milliseconds(count));
  }
}

}  // namespace
}  // namespace peal
