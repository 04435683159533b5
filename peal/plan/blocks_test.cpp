#include "peal/plan/blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::plan {
namespace {

using schedule::Problem;

Elements operator""_e(unsigned long long n) { return Elements(static_cast<std::int64_t>(n)); }

std::vector<std::int64_t> counts(const Blocks& blocks) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < blocks.parts(); ++i) all.push_back(blocks[i].count.value);
  return all;
}

TEST(BlocksTest, EvenBlocksDifferByAtMostOneAndCoverTheBuffer) {
  EXPECT_THAT(counts(Blocks::even(10_e, 4)), testing::ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(counts(Blocks::even(2_e, 4)), testing::ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(counts(Blocks::even(0_e, 2)), testing::ElementsAre(0, 0));
  EXPECT_EQ(Blocks::even(10_e, 4)[2], (Block{6_e, 2_e}));
}

TEST(BlocksTest, EvenBlocksDoNotDivideAGrain) {
  EXPECT_THAT(counts(Blocks::even(100_e, 3, 16_e)), testing::ElementsAre(48, 32, 20));
  EXPECT_THAT(counts(Blocks::even(20_e, 3, 16_e)), testing::ElementsAre(16, 4, 0));
}

TEST(BlocksTest, TheLastBlockOfAFixedSizeMayBeSmaller) {
  EXPECT_THAT(counts(Blocks::of_size(10_e, 4_e)), testing::ElementsAre(4, 4, 2));
  EXPECT_THAT(counts(Blocks::of_size(8_e, 4_e)), testing::ElementsAre(4, 4));
  EXPECT_THAT(counts(Blocks::of_size(0_e, 4_e)), testing::IsEmpty());
}

TEST(BlocksTest, BlocksOfRanksHaveTheSizesOfTheProblem) {
  Problem problem{.operation = Operation::kAllGather, .ranks = 3, .count = 5_e};
  EXPECT_THAT(counts(Blocks::of_ranks(problem)), testing::ElementsAre(5, 5, 5));
  EXPECT_EQ(largest_block(problem), 5_e);
  problem.counts = {2_e, 0_e, 7_e};
  const Blocks blocks = Blocks::of_ranks(problem);
  EXPECT_THAT(counts(blocks), testing::ElementsAre(2, 0, 7));
  EXPECT_EQ(blocks.largest(), 7_e);
  EXPECT_EQ(blocks.smallest(), 0_e);
  EXPECT_EQ(largest_block(problem), 7_e);
}

TEST(BlocksTest, AllToAllSendsARowAndReceivesAColumn) {
  const Problem problem{
      .operation = Operation::kAllToAll, .ranks = 2, .counts = {1_e, 2_e, 3_e, 4_e}};
  EXPECT_THAT(counts(Blocks::sent_by(problem, 1)), testing::ElementsAre(3, 4));
  EXPECT_THAT(counts(Blocks::received_by(problem, 1)), testing::ElementsAre(2, 4));
}

TEST(BlocksTest, SectionsAreContiguous) {
  const Problem problem{
      .operation = Operation::kAllGather, .ranks = 4, .counts = {5_e, 0_e, 3_e, 9_e}};
  const Blocks sections = Blocks::of_ranks(problem).sections(2_e, 4_e);
  EXPECT_THAT(counts(sections), testing::ElementsAre(3, 0, 1, 4));
  EXPECT_EQ(sections[3], (Block{4_e, 4_e}));
}

TEST(BlocksTest, RunsThatPassTheEndAreSplitInTwo) {
  const auto around = [](std::int64_t first, std::int64_t count) {
    const auto runs = Blocks::even(12_e, 4).around(first, count);
    return std::vector<Block>(runs.begin(), runs.end());
  };
  EXPECT_THAT(around(1, 2), testing::ElementsAre(Block{3_e, 6_e}));
  EXPECT_THAT(around(2, 2), testing::ElementsAre(Block{6_e, 6_e}));
  EXPECT_THAT(around(3, 3), testing::ElementsAre(Block{9_e, 3_e}, Block{0_e, 6_e}));
}

TEST(BlocksTest, PartsOfABlockLieInsideIt) {
  EXPECT_EQ(part_of({100_e, 7_e}, 1, 3), (Block{103_e, 2_e}));
}

TEST(BlocksTest, LargeCountsDoNotOverflow) {
  const Elements huge(std::int64_t{1} << 60);
  const Blocks blocks = Blocks::even(huge, 1000);
  EXPECT_EQ(blocks.range(0, 1000).count, huge);
  EXPECT_EQ(pieces_of(huge, Elements(std::int64_t{1} << 50)), 1 << 10);
}

}  // namespace
}  // namespace peal::plan
