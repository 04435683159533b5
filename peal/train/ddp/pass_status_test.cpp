#include "peal/train/ddp/pass_status.h"

#include <vector>

#include <gtest/gtest.h>

namespace peal::train {
namespace {

/// The status that all ranks get.
PassStatus sum_of(std::vector<PassStatus>& ranks) {
  PassStatus sum = ranks.front();
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    for (std::size_t i = 0; i < sum.words().size(); ++i) sum.words()[i] += ranks[rank].words()[i];
  }
  return sum;
}

TEST(PassStatusTest, TheSumTellsWhatEachRankDid) {
  std::vector<PassStatus> ranks(3, PassStatus(2, 3));
  ranks[1].set_active(1, 10);
  ranks[2].set_active(2, 5);
  ranks[1].set_reached(0, PassStatus::Gradient::kDense);
  ranks[2].set_reached(0, PassStatus::Gradient::kSparse);
  ranks[2].set_module_changed();
  const PassStatus sum = sum_of(ranks);
  EXPECT_TRUE(sum.some_module_changed());
  EXPECT_FALSE(sum.some_other_order());
  EXPECT_EQ(sum.samples(), 15);
  EXPECT_EQ(sum.active_ranks(), 2);
  EXPECT_EQ(sum.first_active(), 1);
  EXPECT_EQ(sum.reached(0), 2);
  EXPECT_TRUE(sum.is_sparse(0));
  EXPECT_EQ(sum.reached(1), 0);
  EXPECT_FALSE(sum.is_sparse(1));
}

TEST(PassStatusTest, EachOfManyRanksIsCounted) {
  for (const int ranks : {1, 61, 62, 63, 124, 125, 1000}) {
    std::vector<PassStatus> all(static_cast<std::size_t>(ranks), PassStatus(1, ranks));
    for (Rank rank = ranks / 2; rank < ranks; ++rank) {
      all[static_cast<std::size_t>(rank)].set_active(rank, 1);
    }
    const PassStatus sum = sum_of(all);
    EXPECT_EQ(sum.active_ranks(), ranks - ranks / 2);
    EXPECT_EQ(sum.first_active(), ranks / 2);
    EXPECT_EQ(sum.samples(), ranks - ranks / 2);
  }
}

TEST(PassStatusTest, WithoutDataNoRankIsActive) {
  const PassStatus nothing(1, 100);
  EXPECT_EQ(nothing.active_ranks(), 0);
  EXPECT_EQ(nothing.first_active(), 0);
}

}  // namespace
}  // namespace peal::train
