#include "peal/base/size_text.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace peal {
namespace {

TEST(SizeTextTest, ANumberAloneIsBytes) {
  EXPECT_EQ(try_parse_size("0"), 0_B);
  EXPECT_EQ(try_parse_size("4096"), 4_KiB);
  EXPECT_EQ(try_parse_size("9223372036854775807"), Bytes(INT64_MAX));
}

TEST(SizeTextTest, UnitsArePowersOf1024HoweverTheyAreWritten) {
  for (const char* text : {"3k", "3K", "3kb", "3KB", "3Kb", "3kib", "3KiB"}) {
    EXPECT_EQ(try_parse_size(text), 3_KiB) << text;
  }
  for (const char* text : {"1m", "1M", "1mb", "1MB", "1mib", "1MiB"}) {
    EXPECT_EQ(try_parse_size(text), 1_MiB) << text;
  }
  for (const char* text : {"2g", "2G", "2gb", "2GiB"}) {
    EXPECT_EQ(try_parse_size(text), 2048_MiB) << text;
  }
}

TEST(SizeTextTest, WhatIsNoWholeNumberOfBytesIsNoSize) {
  for (const char* text : {"",           "x",    "K",   "-1",   "-0",
                           "+1",         " 1",   "1 K", "1.5M", "1e3",
                           "1T",         "4K4",  "1kk", "1ki",  "1b",
                           "1kibi",      "0x10", "1,0", "inf",  "9223372036854775808",
                           "9999999999G"}) {
    EXPECT_EQ(try_parse_size(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace peal
