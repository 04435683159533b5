#include "peal/base/size_text.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace peal {
namespace {

TEST(SizeTextTest, ANumberWithoutAUnitIsBytes) {
  EXPECT_EQ(try_parse_size("0"), 0_B);
  EXPECT_EQ(try_parse_size("4096"), 4_KiB);
  EXPECT_EQ(try_parse_size("9223372036854775807"), Bytes(INT64_MAX));
}

TEST(SizeTextTest, UnitsArePowersOf1024InAnySpelling) {
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

TEST(SizeTextTest, AnyOtherTextIsNotASize) {
  for (const char* text : {"",           "x",    "K",   "-1",   "-0",
                           "+1",         " 1",   "1 K", "1.5M", "1e3",
                           "1T",         "4K4",  "1kk", "1ki",  "1b",
                           "1kibi",      "0x10", "1,0", "inf",  "9223372036854775808",
                           "9999999999G"}) {
    EXPECT_EQ(try_parse_size(text), std::nullopt) << text;
  }
}

TEST(SizeTextTest, ASizeIsWrittenInTheLargestUnitThatGivesAWholeNumber) {
  EXPECT_EQ(size_text(0_B, SizeStyle::kLong), "0 B");
  EXPECT_EQ(size_text(4_B, SizeStyle::kLong), "4 B");
  EXPECT_EQ(size_text(64_KiB, SizeStyle::kLong), "64 KiB");
  EXPECT_EQ(size_text(1500_B, SizeStyle::kLong), "1500 B");
  EXPECT_EQ(size_text(1025_KiB, SizeStyle::kLong), "1025 KiB");
  EXPECT_EQ(size_text(2048_MiB, SizeStyle::kLong), "2 GiB");
}

TEST(SizeTextTest, AShortTextReadsBackAsWritten) {
  EXPECT_EQ(size_text(64_KiB, SizeStyle::kShort), "64k");
  for (const Bytes size : {0_B, 1_B, 1023_B, 1_KiB, 1025_B, 1_MiB, 1536_KiB, 2048_MiB}) {
    EXPECT_EQ(try_parse_size(size_text(size, SizeStyle::kShort)), size);
  }
}

}  // namespace
}  // namespace peal
