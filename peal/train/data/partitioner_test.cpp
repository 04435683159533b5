#include "peal/train/data/partitioner.h"

#include <algorithm>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::train::data {
namespace {

TEST(DataPartitionerTest, EqualPartsHoldEverySampleOnceAndDifferByOneAtMost) {
  for (std::size_t size = 0; size <= 50; ++size) {
    for (int parts = 1; parts <= 7; ++parts) {
      const DataPartitioner partitioner = DataPartitioner::equal(size, parts);
      std::multiset<std::size_t> seen;
      std::size_t smallest = size, largest = 0;
      for (std::size_t part = 0; part < partitioner.parts(); ++part) {
        const auto samples = partitioner.part(part);
        seen.insert(samples.begin(), samples.end());
        smallest = std::min(smallest, samples.size());
        largest = std::max(largest, samples.size());
      }
      EXPECT_EQ(seen.size(), size) << parts << " parts";
      EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), size) << parts << " parts";
      EXPECT_LE(largest - smallest, 1u) << size << " samples in " << parts << " parts";
    }
  }
}

TEST(DataPartitionerTest, FractionsThatSumToOneLoseNothing) {
  const std::vector<double> fractions = {0.7, 0.2, 0.1};
  const DataPartitioner partitioner(101, fractions);
  EXPECT_EQ(partitioner.part(0).size(), 71u);
  EXPECT_EQ(partitioner.part(1).size(), 20u);
  EXPECT_EQ(partitioner.part(2).size(), 10u);
}

TEST(DataPartitionerTest, FractionsBelowOneLeaveTheRestOut) {
  const std::vector<double> fractions = {0.25, 0.25};
  const DataPartitioner partitioner(100, fractions);
  EXPECT_EQ(partitioner.part(0).size() + partitioner.part(1).size(), 50u);
}

TEST(DataPartitionerTest, TheSeedDecidesTheParts) {
  const auto first = [](std::uint64_t seed) {
    const DataPartitioner partitioner = DataPartitioner::equal(100, 2, seed);
    return std::vector(partitioner.part(0).begin(), partitioner.part(0).end());
  };
  EXPECT_EQ(first(1), first(1));
  EXPECT_NE(first(1), first(2));
}

TEST(DataPartitionerTest, InvalidFractionsAreUsageErrors) {
  const std::vector<std::vector<double>> wrong = {
      {0.7, 0.4}, {-0.1}, {std::numeric_limits<double>::quiet_NaN()}};
  for (const auto& fractions : wrong) EXPECT_THROW(DataPartitioner(10, fractions), Error);
  EXPECT_THROW(DataPartitioner::equal(10, 0), Error);
  EXPECT_THROW(DataPartitioner::equal(10, 2).part(2), Error);
}

}  // namespace
}  // namespace peal::train::data
