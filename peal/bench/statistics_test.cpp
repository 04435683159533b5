#include "peal/bench/statistics.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::bench {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

using Intervals = std::vector<Interval>;

TEST(StatisticsTest, ASampleLastsFromTheLastEntryToTheLastExit) {
  const std::vector<Intervals> ranks = {{{1000, 9000}, {20000, 21000}},
                                        {{3000, 5000}, {20500, 24500}}};
  EXPECT_THAT(samples_of(ranks, 1), ElementsAre(DoubleEq(6.0), DoubleEq(4.0)));
  EXPECT_THAT(samples_of(ranks, 2), ElementsAre(DoubleEq(3.0), DoubleEq(2.0)));
}

TEST(StatisticsTest, AQuantileLiesBetweenItsNeighbours) {
  const std::vector<double> sorted = {1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(quantile(sorted, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile(sorted, 1), 8);
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{5}, 0.99), 5);
}

TEST(StatisticsTest, TheMedianIsOverAllSamplesAndTheRangeOverTheRounds) {
  const std::vector<std::vector<double>> rounds = {{3, 1, 2}, {10, 30, 20}};
  const Summary summary = summarize(rounds);
  EXPECT_DOUBLE_EQ(summary.median, 6.5);
  EXPECT_DOUBLE_EQ(summary.least, 2);
  EXPECT_DOUBLE_EQ(summary.most, 20);
  EXPECT_NEAR(summary.p99, 29.5, 1e-9);
  EXPECT_EQ(summary.rounds, 2);
  EXPECT_EQ(summary.samples, 6);
  EXPECT_THAT(summary.medians, ElementsAre(DoubleEq(2), DoubleEq(20)));
}

TEST(StatisticsTest, ARatioIsTheMedianOfTheRatiosOfTheRounds) {
  const Summary own{.median = 4, .medians = {2, 4, 4}};
  const Summary other{.median = 1, .medians = {1, 1, 2}};
  EXPECT_DOUBLE_EQ(ratio(other, own), 0.5);
  EXPECT_DOUBLE_EQ(ratio(own, other), 2);
  EXPECT_DOUBLE_EQ(ratio(own, own), 1);
}

TEST(StatisticsTest, ASlowRoundDoesNotChangeTheRatio) {
  const std::vector<std::vector<double>> calm = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
  const std::vector<std::vector<double>> busy = {{2, 2, 2}, {6, 6, 6}, {6, 6, 6}};
  const std::vector<std::vector<double>> busy_too = {{1, 1, 1, 1, 1, 1, 1}, {3, 3, 3}, {3, 3, 3}};
  EXPECT_DOUBLE_EQ(ratio(summarize(busy), summarize(busy_too)), 2);
  EXPECT_DOUBLE_EQ(ratio(summarize(calm), summarize(calm)), 1);
}

TEST(StatisticsTest, FarBehindMeansFarBehindInEachMeasurement) {
  constexpr std::array kFast = {1.0, 2.0};
  EXPECT_TRUE(is_far_behind(std::array{3.5, 6.5}, kFast, 3));
  EXPECT_FALSE(is_far_behind(std::array{3.5, 5.5}, kFast, 3));
  EXPECT_FALSE(is_far_behind(std::array{2.5, 60.0}, kFast, 3));
  EXPECT_FALSE(is_far_behind(kFast, kFast, 3));
}

}  // namespace
}  // namespace peal::bench
