#include "peal/base/parse_number.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace peal {
namespace {

TEST(ParseNumberTest, TheWholeTextMustBeANumberThatFitsTheType) {
  EXPECT_EQ(try_parse_number<int>("-12"), -12);
  EXPECT_EQ(try_parse_number<double>("2.5e1"), 25);
  EXPECT_EQ(try_parse_number<std::uint16_t>("65535"), 65535);
  EXPECT_EQ(try_parse_number<std::uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(try_parse_number<std::uint16_t>("-1"), std::nullopt);
  for (const char* const text : {"", " 1", "1 ", "+1", "1x", "0x1", "1.5"}) {
    EXPECT_EQ(try_parse_number<int>(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace peal
