#include "peal/train/optim/shard_assignment.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::train {
namespace {

using ::testing::ElementsAre;

TEST(ShardAssignmentTest, TheLargestParametersGoFirstToTheRankWithLeast) {
  std::vector<Bytes> load(2);
  EXPECT_THAT(assign_shards(std::vector<Bytes>{1_B, 5_B, 3_B, 3_B}, load), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(load, ElementsAre(6_B, 6_B));
}

TEST(ShardAssignmentTest, LaterParametersEvenOutTheLoad) {
  std::vector<Bytes> load = {10_B, 4_B};
  EXPECT_THAT(assign_shards(std::vector<Bytes>{2_B, 2_B, 2_B}, load), ElementsAre(1, 1, 1));
  EXPECT_THAT(load, ElementsAre(10_B, 10_B));
}

TEST(ShardAssignmentTest, SomeRanksOwnNothingIfThereAreFewParameters) {
  std::vector<Bytes> load(4);
  EXPECT_THAT(assign_shards(std::vector<Bytes>{7_B}, load), ElementsAre(0));
  EXPECT_THAT(assign_shards({}, load), ElementsAre());
}

TEST(ShardAssignmentTest, NoRankHasMoreThanItsPartAndTheLargestParameter) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<Bytes> load(1 + random() % 8);
    std::vector<Bytes> sizes(random() % 30);
    for (Bytes& size : sizes) size = Bytes(random() % 1000);
    assign_shards(sizes, load);
    const Bytes sum = std::accumulate(sizes.begin(), sizes.end(), Bytes());
    const Bytes largest = sizes.empty() ? Bytes() : std::ranges::max(sizes);
    for (const Bytes of_rank : load) {
      EXPECT_LE(of_rank.value, sum.value / std::ssize(load) + largest.value);
    }
  }
}

}  // namespace
}  // namespace peal::train
