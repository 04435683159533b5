#include "peal/bench/sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"

namespace peal::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SizesTest, UnitsArePowersOf1024) {
  EXPECT_EQ(parse_size("4"), 4_B);
  EXPECT_EQ(parse_size("64K"), 64_KiB);
  EXPECT_EQ(parse_size("3m"), 3_MiB);
  EXPECT_EQ(parse_size("3MiB"), 3_MiB);
  EXPECT_EQ(parse_size("2G"), 2048_MiB);
}

TEST(SizesTest, ARangeHasStepsByFourAndStopsAtItsEnd) {
  EXPECT_THAT(parse_sizes("4:256"), ElementsAre(4_B, 16_B, 64_B, 256_B));
  EXPECT_THAT(parse_sizes("4:255"), ElementsAre(4_B, 16_B, 64_B));
  EXPECT_THAT(parse_sizes("1K:4K:2"), ElementsAre(1_KiB, 2_KiB, 4_KiB));
}

TEST(SizesTest, AStepThatWouldOverflowEndsTheRange) {
  EXPECT_THAT(parse_sizes("4:8:4611686018427387904"), ElementsAre(4_B));
  EXPECT_THAT(parse_sizes("4:8:9223372036854775807"), ElementsAre(4_B));
  EXPECT_THAT(parse_sizes("512G:1024G:3037000500"), ElementsAre(512_KiB * (1 << 20)));
}

TEST(SizesTest, ListsAndRangesMixAndDuplicatesAreRemoved) {
  EXPECT_THAT(parse_sizes("1M,4:16,16,1K"), ElementsAre(4_B, 16_B, 1_KiB, 1_MiB));
}

TEST(SizesTest, AnInvalidSizeIsAnErrorThatSaysWhatToPass) {
  for (const char* text : {"", "x", "4,,5", "-1", "0", "4:", ":4", "1T", "4K4", "9999999999G"}) {
    const Error error = error_of([&] { parse_sizes(text); });
    EXPECT_EQ(error.kind(), ErrorKind::kUsage) << text;
    EXPECT_THAT(error.what(), HasSubstr("as in 4, 64K, 1M or 2G")) << text;
  }
  EXPECT_THAT(error_of([] { parse_sizes("8:4"); }).what(), HasSubstr("smaller size comes first"));
  EXPECT_THAT(error_of([] { parse_sizes("4:8:1"); }).what(), HasSubstr("2 or more"));
  EXPECT_THAT(error_of([] { parse_sizes("4:8:2:2"); }).what(), HasSubstr("FROM:TO:FACTOR"));
}

TEST(SizesTest, AListHasNoEmptyPart) {
  EXPECT_THAT(parse_list("--dtype", "f32,bf16"), ElementsAre("f32", "bf16"));
  EXPECT_THAT(error_of([] { parse_list("--dtype", "f32,"); }).what(), HasSubstr("--dtype"));
}

}  // namespace
}  // namespace peal::bench
