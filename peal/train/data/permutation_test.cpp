#include "peal/train/data/permutation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/train/data/random.h"

namespace peal::train::data {
namespace {

TEST(PermutationTest, HoldsEveryIndexOnce) {
  for (std::size_t size = 0; size < 50; ++size) {
    std::vector<std::size_t> order = permutation(size, 7);
    std::sort(order.begin(), order.end());
    std::vector<std::size_t> expected(size);
    std::iota(expected.begin(), expected.end(), std::size_t{0});
    EXPECT_EQ(order, expected) << "size " << size;
  }
}

TEST(PermutationTest, SeedAndEpochDecideTheOrderAndNothingElseDoes) {
  EXPECT_EQ(permutation(100, 1, 2), permutation(100, 1, 2));
  EXPECT_NE(permutation(100, 1, 2), permutation(100, 1, 3));
  EXPECT_NE(permutation(100, 1, 2), permutation(100, 2, 2));
  EXPECT_NE(permutation(100, 1, 2), permutation(100, 2, 1)) << "seed and epoch were exchanged";
}

TEST(PermutationTest, TheOrderOfAKnownSeedIsTheSameForever) {
  EXPECT_THAT(permutation(8, 1234), testing::ElementsAre(3, 0, 6, 7, 4, 2, 1, 5));
}

TEST(PermutationTest, EveryIndexComesFirstAboutEquallyOften) {
  constexpr int kDraws = 8000;
  std::array<int, 8> first{};
  for (int seed = 0; seed < kDraws; ++seed) first[permutation(first.size(), seed)[0]] += 1;
  for (const int count : first) EXPECT_NEAR(count, kDraws / 8, 150);  // five standard deviations
}

TEST(RandomTest, NumbersLieInTheirRange) {
  Random random({3});
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(random.below(3), 3u);
    const double value = random.between(-2, 5);
    EXPECT_GE(value, -2);
    EXPECT_LT(value, 5);
  }
  EXPECT_EQ(random.below(1), 0u);
}

TEST(RandomTest, ExponentialNumbersExceedABoundAsOftenAsTheyShould) {
  constexpr int kDraws = 40000;
  Random random({11});
  double sum = 0;
  std::array<int, 4> above{};
  for (int i = 0; i < kDraws; ++i) {
    const double drawn = random.exponential();
    ASSERT_GE(drawn, 0);
    sum += drawn;
    for (std::size_t bound = 0; bound < above.size(); ++bound) {
      above[bound] += drawn > 0.5 * static_cast<double>(bound + 1) ? 1 : 0;
    }
  }
  EXPECT_NEAR(sum / kDraws, 1, 0.02);  // four standard deviations
  for (std::size_t bound = 0; bound < above.size(); ++bound) {
    const double expected = std::exp(-0.5 * static_cast<double>(bound + 1));
    EXPECT_NEAR(above[bound] / static_cast<double>(kDraws), expected, 0.01);
  }
}

}  // namespace
}  // namespace peal::train::data
