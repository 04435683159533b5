#include "peal/train/data/shard.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/train/data/permutation.h"

namespace peal::train::data {
namespace {

/// How often all ranks together take each sample. Also checks that all ranks take the same number.
std::map<std::size_t, int> taken(std::span<const std::size_t> order,
                                 int ranks,
                                 Remainder remainder,
                                 std::size_t from = 0) {
  std::map<std::size_t, int> counts;
  const std::size_t share = shard_of(order, 0, ranks, remainder, from).size();
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::vector<std::size_t> mine = shard_of(order, rank, ranks, remainder, from);
    EXPECT_EQ(mine.size(), share) << "rank " << rank << " of " << ranks;
    for (const std::size_t sample : mine) counts[sample] += 1;
  }
  return counts;
}

std::size_t sum(const std::map<std::size_t, int>& counts) {
  std::size_t total = 0;
  for (const auto& [sample, count] : counts) total += static_cast<std::size_t>(count);
  return total;
}

TEST(ShardTest, PaddingLosesNoSampleAndRepeatsOnlyToFillTheLastRound) {
  for (std::size_t size = 0; size <= 50; ++size) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      const std::vector<std::size_t> order = permutation(size, 5);
      const auto counts = taken(order, ranks, Remainder::kPad);
      EXPECT_EQ(counts.size(), size) << ranks << " ranks";
      const std::size_t rounds = (size + ranks - 1) / ranks;
      EXPECT_EQ(sum(counts), rounds * ranks) << size << " samples, " << ranks << " ranks";
    }
  }
}

TEST(ShardTest, DroppingRepeatsNoSampleAndLosesFewerSamplesThanRanks) {
  for (std::size_t size = 0; size <= 50; ++size) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      const std::vector<std::size_t> order = permutation(size, 5);
      const auto counts = taken(order, ranks, Remainder::kDrop);
      EXPECT_EQ(counts.size(), size / ranks * ranks) << size << " samples, " << ranks << " ranks";
      EXPECT_EQ(sum(counts), counts.size());
    }
  }
}

TEST(ShardTest, UnevenSharesTakeEverySampleOnceAndDifferByOneAtMost) {
  for (std::size_t size = 0; size <= 50; ++size) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      const std::vector<std::size_t> order = permutation(size, 5);
      std::vector<std::size_t> all;
      std::size_t last = share_of(size, 0, ranks, Remainder::kUneven);
      const std::size_t most = last;
      for (Rank rank = 0; rank < ranks; ++rank) {
        const auto mine = shard_of(order, rank, ranks, Remainder::kUneven);
        EXPECT_LE(mine.size(), last) << "later ranks take no more than earlier ranks";
        EXPECT_GE(mine.size() + 1, most);
        last = mine.size();
        all.insert(all.end(), mine.begin(), mine.end());
      }
      EXPECT_THAT(all, testing::UnorderedElementsAreArray(order)) << size << " on " << ranks;
    }
  }
}

TEST(ShardTest, ARankTakesEveryRanksThSample) {
  const std::vector<std::size_t> order = {10, 11, 12, 13, 14, 15, 16};
  EXPECT_THAT(shard_of(order, 1, 3, Remainder::kPad), testing::ElementsAre(11, 14, 10));
  EXPECT_THAT(shard_of(order, 1, 3, Remainder::kDrop), testing::ElementsAre(11, 14));
  EXPECT_THAT(shard_of(order, 0, 3, Remainder::kUneven), testing::ElementsAre(10, 13, 16));
  EXPECT_THAT(shard_of(order, 1, 3, Remainder::kUneven), testing::ElementsAre(11, 14));
}

TEST(ShardTest, FewerSamplesThanRanksAreRepeatedForAll) {
  const std::vector<std::size_t> order = {7, 8};
  EXPECT_THAT(shard_of(order, 4, 5, Remainder::kPad), testing::ElementsAre(7));
  EXPECT_TRUE(shard_of(order, 4, 5, Remainder::kDrop).empty());
  EXPECT_TRUE(shard_of(order, 4, 5, Remainder::kUneven).empty());
}

TEST(ShardTest, AnEpochInterruptedAndContinuedByOtherRanksTakesEverySampleOnce) {
  const std::vector<std::size_t> order = permutation(48, 9);
  for (int before = 1; before <= 4; ++before) {
    for (int after = 1; after <= 4; ++after) {
      std::map<std::size_t, int> counts;
      const std::size_t steps = 3;
      for (Rank rank = 0; rank < before; ++rank) {
        const auto mine = shard_of(order, rank, before, Remainder::kDrop);
        for (std::size_t k = 0; k < steps; ++k) counts[mine[k]] += 1;
      }
      for (const auto& [sample, count] : taken(order, after, Remainder::kPad, steps * before)) {
        counts[sample] += count;
      }
      const std::size_t left = order.size() - steps * before;
      const std::size_t padding = (after - left % after) % after;
      EXPECT_EQ(counts.size(), order.size()) << before << " then " << after;
      EXPECT_EQ(sum(counts), order.size() + padding) << before << " then " << after;
    }
  }
}

TEST(ShardTest, BatchesAreCountedWithAndWithoutAShortLastBatch) {
  for (std::size_t samples = 0; samples <= 20; ++samples) {
    for (std::size_t batch_size = 1; batch_size <= 7; ++batch_size) {
      std::size_t batches = 0, full = 0;
      for (std::size_t taken = 0; taken < samples; taken += batch_size) {
        batches += 1;
        full += taken + batch_size <= samples ? 1 : 0;
      }
      EXPECT_EQ(batch_count(samples, batch_size), batches) << samples << " by " << batch_size;
      EXPECT_EQ(batch_count(samples, batch_size, ShortBatch::kDrop), full);
    }
  }
  EXPECT_THROW(batch_count(4, 0), Error);
}

}  // namespace
}  // namespace peal::train::data
