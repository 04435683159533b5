#include "peal/train/data/weighted_draw.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::train::data {
namespace {

/// The sum of (observed - expected)^2 / expected.
template <class Key>
double chi_square(const std::map<Key, int>& counts,
                  const std::map<Key, double>& probabilities,
                  int draws) {
  double sum = 0;
  for (const auto& [key, probability] : probabilities) {
    const double expected = probability * draws;
    const auto found = counts.find(key);
    const double observed = found == counts.end() ? 0 : found->second;
    sum += (observed - expected) * (observed - expected) / expected;
  }
  return sum;
}

std::string text_of_error(const std::vector<double>& weights, Replacement replacement) {
  try {
    WeightedDraw(weights, replacement);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "no error";
}

TEST(WeightedDrawTest, DrawsWithReplacementAreAsFrequentAsTheWeights) {
  const std::vector<double> weights = {1, 0, 2, 3.5, 0, 10, 0.25, 1, 1e-300};
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::map<std::size_t, double> probabilities;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 1e-200) probabilities[i] = weights[i] / sum;
  }
  constexpr int kDraws = 100000;
  const WeightedDraw draw(weights, Replacement::kWith);
  std::map<std::size_t, int> counts;
  for (const std::size_t one : draw.draw(kDraws, 3, 1)) counts[one] += 1;
  EXPECT_EQ(counts.size(), probabilities.size()) << "an index of weight 0 was drawn";
  EXPECT_LT(chi_square(counts, probabilities, kDraws), 20.5);  // 99.9% of 5 degrees of freedom
}

TEST(WeightedDrawTest, DrawsWithoutReplacementFollowTheWeightsThatAreLeft) {
  const std::vector<double> weights = {4, 1, 0, 2, 0.5};
  const double sum = 7.5;
  std::map<std::pair<std::size_t, std::size_t>, double> probabilities;  // of the first two draws
  for (std::size_t i = 0; i < weights.size(); ++i) {
    for (std::size_t j = 0; j < weights.size(); ++j) {
      if (i == j || weights[i] == 0 || weights[j] == 0) continue;
      probabilities[{i, j}] = weights[i] / sum * weights[j] / (sum - weights[i]);
    }
  }
  constexpr int kDraws = 40000;
  const WeightedDraw draw(weights, Replacement::kWithout);
  std::map<std::pair<std::size_t, std::size_t>, int> counts;
  for (int epoch = 0; epoch < kDraws; ++epoch) {
    const auto drawn = draw.draw(2, 5, static_cast<std::uint64_t>(epoch));
    counts[{drawn[0], drawn[1]}] += 1;
  }
  EXPECT_EQ(counts.size(), probabilities.size());
  EXPECT_LT(chi_square(counts, probabilities, kDraws), 31.3);  // 99.9% of 11 degrees of freedom
}

TEST(WeightedDrawTest, WithoutReplacementEachPositiveWeightIsDrawnOnce) {
  std::vector<double> weights(500);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<double>(i % 4);
  const WeightedDraw draw(weights, Replacement::kWithout);
  EXPECT_EQ(draw.positive(), 375u);
  for (const std::size_t count : {0u, 1u, 100u, 374u, 375u}) {
    const auto drawn = draw.draw(count, 1, 2);
    EXPECT_EQ(drawn.size(), count);
    EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), count);
    for (const std::size_t one : drawn) EXPECT_GT(weights[one], 0);
  }
}

TEST(WeightedDrawTest, AZeroWeightIsNeverDrawnWhateverTheRounding) {
  for (std::size_t size = 1; size <= 40; ++size) {
    std::vector<double> weights(2 * size);
    for (std::size_t i = 0; i < size; ++i) weights[2 * i + 1] = 0.1 * static_cast<double>(i + 1);
    for (const auto replacement : {Replacement::kWith, Replacement::kWithout}) {
      const WeightedDraw draw(weights, replacement);
      for (const std::size_t one : draw.draw(size, size, 0)) EXPECT_EQ(one % 2, 1u);
    }
  }
}

TEST(WeightedDrawTest, SeedAndEpochDecideTheDrawsAndNothingElseDoes) {
  const std::vector<double> weights(100, 0.3);
  for (const auto replacement : {Replacement::kWith, Replacement::kWithout}) {
    const WeightedDraw draw(weights, replacement);
    EXPECT_EQ(draw.draw(50, 1, 2), WeightedDraw(weights, replacement).draw(50, 1, 2));
    EXPECT_NE(draw.draw(50, 1, 2), draw.draw(50, 1, 3));
    EXPECT_NE(draw.draw(50, 1, 2), draw.draw(50, 2, 2));
  }
}

TEST(WeightedDrawTest, TheDrawsOfAKnownSeedAreTheSameForever) {
  const std::vector<double> weights = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_THAT(WeightedDraw(weights, Replacement::kWith).draw(8, 1234, 0),
              testing::ElementsAre(5, 6, 6, 7, 1, 4, 1, 2));
  EXPECT_THAT(WeightedDraw(weights, Replacement::kWithout).draw(8, 1234, 0),
              testing::ElementsAre(7, 4, 6, 5, 2, 3, 0, 1));
}

TEST(WeightedDrawTest, ImpossibleWeightsAreUsageErrorsThatNameTheWeight) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  using testing::HasSubstr;
  for (const auto replacement : {Replacement::kWith, Replacement::kWithout}) {
    EXPECT_THAT(text_of_error({1, -0.5}, replacement), HasSubstr("weight 1 of 2 is -0.5"));
    EXPECT_THAT(text_of_error({kNan}, replacement), HasSubstr("weight 0 of 1 is nan"));
    EXPECT_THAT(text_of_error({1, kInfinity}, replacement), HasSubstr("weight 1 of 2 is inf"));
    EXPECT_THAT(text_of_error({1e308, 1e308}, replacement), HasSubstr("sum must be finite"));
    EXPECT_THAT(text_of_error({0, 0, 0}, replacement), HasSubstr("none of 3 weights is positive"));
    EXPECT_THAT(text_of_error({}, replacement), HasSubstr("none of 0 weights is positive"));
  }
  const std::vector<double> weights = {1, 0, 2};
  EXPECT_THROW(WeightedDraw(weights, Replacement::kWithout).draw(3, 0, 0), Error);
  EXPECT_EQ(WeightedDraw(weights, Replacement::kWith).draw(30, 0, 0).size(), 30u);
}

}  // namespace
}  // namespace peal::train::data
