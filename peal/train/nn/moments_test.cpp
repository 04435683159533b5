#include "peal/train/nn/moments.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace peal::train {
namespace {

/// Of one channel, by two passes over the values.
Moments by_two_passes(const std::vector<double>& values) {
  Moments moments = no_moments(1);
  moments.count = static_cast<double>(values.size());
  for (const double value : values) moments.mean[0] += value / moments.count;
  for (const double value : values) {
    moments.squares[0] += (value - moments.mean[0]) * (value - moments.mean[0]);
  }
  return moments;
}

TEST(MomentsTest, CombinedPartsOfAnySizesEqualTheWhole) {
  std::vector<double> values(23);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 1e6 + std::sin(static_cast<double>(i * i));  // a mean far above the deviation
  }
  const Moments whole = by_two_passes(values);
  for (std::size_t first = 0; first <= values.size(); ++first) {
    for (std::size_t second = first; second <= values.size(); ++second) {
      Moments all = no_moments(1);
      for (const auto& [from, to] : std::vector<std::pair<std::size_t, std::size_t>>{
               {0, first}, {first, second}, {second, values.size()}}) {
        const auto begin = values.begin();
        all = combined(all,
                       by_two_passes({begin + static_cast<std::ptrdiff_t>(from),
                                      begin + static_cast<std::ptrdiff_t>(to)}));
      }
      EXPECT_EQ(all.count, whole.count);
      EXPECT_NEAR(all.mean[0], whole.mean[0], 1e-9);
      EXPECT_NEAR(all.squares[0], whole.squares[0], 1e-8 * whole.squares[0]);
    }
  }
}

TEST(MomentsTest, NoValuesChangeNothing) {
  const Moments some = {.count = 3, .mean = {1, 2}, .squares = {4, 5}};
  EXPECT_EQ(combined(some, no_moments(2)), some);
  EXPECT_EQ(combined(no_moments(2), some), some);
  EXPECT_EQ(combined(no_moments(2), no_moments(2)), no_moments(2));
}

TEST(MomentsTest, ARowHoldsAllNumbers) {
  const Moments some = {.count = 3, .mean = {1, 2}, .squares = {4, 5}};
  EXPECT_EQ(row_of(some), (std::vector<double>{3, 1, 2, 4, 5}));
  EXPECT_EQ(moments_of(row_of(some)), some);
}

}  // namespace
}  // namespace peal::train
