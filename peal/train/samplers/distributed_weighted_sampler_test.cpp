#include "peal/train/samplers/distributed_weighted_sampler.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"

namespace peal::train {
namespace {

using data::Remainder;
using data::Replacement;

std::vector<std::size_t> take_epoch(DistributedWeightedSampler& sampler) {
  sampler.reset();
  std::vector<std::size_t> taken;
  while (const auto batch = sampler.next(3)) {
    taken.insert(taken.end(), batch->begin(), batch->end());
  }
  return taken;
}

TEST(DistributedWeightedSamplerTest, RanksTogetherDrawAsOneRankDoes) {
  const std::vector<double> weights = {1, 0, 5, 2, 0.5, 3};
  for (const auto replacement : {Replacement::kWith, Replacement::kWithout}) {
    const WeightedSamplerOptions options = {
        .replacement = replacement, .samples = 5, .remainder = Remainder::kUneven, .seed = 2};
    for (int ranks = 1; ranks <= 4; ++ranks) {
      DistributedWeightedSampler alone(weights, 0, 1, options);
      for (int epoch = 0; epoch < 3; ++epoch) {
        const auto order = take_epoch(alone);
        std::vector<std::size_t> together(order.size());
        for (Rank rank = 0; rank < ranks; ++rank) {
          DistributedWeightedSampler sampler(weights, rank, ranks, options);
          sampler.set_epoch(static_cast<std::uint64_t>(epoch));
          const auto mine = take_epoch(sampler);
          for (std::size_t k = 0; k < mine.size(); ++k) {
            together[k * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank)] =
                mine[k];
          }
        }
        EXPECT_EQ(together, order) << ranks << " ranks, epoch " << epoch;
      }
    }
  }
}

TEST(DistributedWeightedSamplerTest, FrequenciesOverManyEpochsFollowTheWeights) {
  const std::vector<double> weights = {1, 0, 2, 5};
  DistributedWeightedSampler sampler(weights, 1, 3, {.samples = 3000, .seed = 4});
  std::map<std::size_t, int> counts;
  int total = 0;
  for (int epoch = 0; epoch < 20; ++epoch) {
    for (const std::size_t sample : take_epoch(sampler)) counts[sample] += 1, ++total;
  }
  EXPECT_EQ(total, 20000);
  EXPECT_EQ(counts.count(1), 0u);
  double chi_square = 0;
  for (const std::size_t sample : {0, 2, 3}) {
    const double expected = weights[sample] / 8 * total;
    chi_square += (counts[sample] - expected) * (counts[sample] - expected) / expected;
  }
  EXPECT_LT(chi_square, 13.8);  // 99.9% of 2 degrees of freedom
}

TEST(DistributedWeightedSamplerTest, AnEpochHasOneDrawForEachWeightUnlessOptionsSayOtherwise) {
  const std::vector<double> weights(10, 1.0);
  EXPECT_EQ(DistributedWeightedSampler(weights, 0, 2).remaining(), 5u);
  EXPECT_EQ(DistributedWeightedSampler(weights, 0, 2, {.samples = 300}).remaining(), 150u);
}

TEST(DistributedWeightedSamplerTest, AnotherNumberOfRanksContinuesTheDraws) {
  std::vector<double> weights(40);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<double>(i % 5);
  const WeightedSamplerOptions options = {
      .replacement = Replacement::kWithout, .samples = 32, .remainder = Remainder::kUneven};
  std::multiset<std::size_t> drawn;
  std::size_t position = 0;
  for (Rank rank = 0; rank < 3; ++rank) {
    DistributedWeightedSampler sampler(weights, rank, 3, options);
    sampler.reset();
    const auto batch = sampler.next(4);
    drawn.insert(batch->begin(), batch->end());
    position = sampler.position();
  }
  EXPECT_EQ(position, 12u);
  for (Rank rank = 0; rank < 2; ++rank) {
    DistributedWeightedSampler sampler(weights, rank, 2, options);
    sampler.seek(position);
    const auto rest = take_epoch(sampler);
    drawn.insert(rest.begin(), rest.end());
  }
  EXPECT_EQ(drawn.size(), 32u) << "every positive weight once";
  EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 32u);
}

TEST(DistributedWeightedSamplerTest, ImpossibleDrawsFailAtConstruction) {
  const std::vector<double> weights = {1, 0, 2};
  const WeightedSamplerOptions without = {.replacement = Replacement::kWithout};
  EXPECT_THROW(DistributedWeightedSampler(weights, 0, 2, without), Error);
  EXPECT_NO_THROW(DistributedWeightedSampler(
      weights, 0, 2, {.replacement = Replacement::kWithout, .samples = 2}));
  EXPECT_THROW(DistributedWeightedSampler(std::vector<double>{1, -1}, 0, 2), Error);
  EXPECT_THROW(DistributedWeightedSampler(std::vector<double>{0, 0}, 0, 2), Error);
  EXPECT_THROW(DistributedWeightedSampler(weights, 2, 2), Error);
}

}  // namespace
}  // namespace peal::train
