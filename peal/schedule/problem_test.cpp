#include "peal/schedule/problem.h"

#include <gtest/gtest.h>

namespace peal::schedule {
namespace {

Problem uniform(Operation operation, std::int64_t count) {
  return {.operation = operation, .ranks = 3, .root = 1, .count = Elements(count)};
}

Problem uneven(Operation operation, std::vector<std::int64_t> counts) {
  Problem problem = uniform(operation, 0);
  for (const std::int64_t count : counts) problem.counts.push_back(Elements(count));
  return problem;
}

std::vector<std::int64_t> by_rank(const Problem& problem, Elements (*size)(const Problem&, Rank)) {
  std::vector<std::int64_t> sizes;
  for (Rank r = 0; r < problem.ranks; ++r) sizes.push_back(size(problem, r).value);
  return sizes;
}

using Sizes = std::vector<std::int64_t>;

TEST(RanksTest, ContainExactlyTheProgression) {
  const Ranks ranks{.first = 2, .count = 3, .stride = 2};
  Sizes inside;
  for (Rank r = -4; r < 12; ++r) {
    if (ranks.contains(r)) inside.push_back(r);
  }
  EXPECT_EQ(inside, (Sizes{2, 4, 6}));
  EXPECT_FALSE((Ranks{.first = 1, .count = 0}.contains(1)));
  EXPECT_TRUE((Ranks{.first = 3, .count = 2, .stride = -1}.contains(2)));
  EXPECT_TRUE((Ranks{.first = 3, .count = 1, .stride = 0}.contains(3)));
}

TEST(ProblemTest, EachOperationHasItsBufferSizes) {
  const auto sizes = [](Operation operation) {
    const Problem problem = uniform(operation, 10);
    return std::pair(by_rank(problem, input_size), by_rank(problem, output_size));
  };
  EXPECT_EQ(sizes(Operation::kBroadcast), std::pair(Sizes({0, 10, 0}), Sizes({10, 10, 10})));
  EXPECT_EQ(sizes(Operation::kReduce), std::pair(Sizes({10, 10, 10}), Sizes({0, 10, 0})));
  EXPECT_EQ(sizes(Operation::kAllReduce), std::pair(Sizes({10, 10, 10}), Sizes({10, 10, 10})));
  EXPECT_EQ(sizes(Operation::kScatter), std::pair(Sizes({0, 30, 0}), Sizes({10, 10, 10})));
  EXPECT_EQ(sizes(Operation::kGather), std::pair(Sizes({10, 10, 10}), Sizes({0, 30, 0})));
  EXPECT_EQ(sizes(Operation::kAllGather), std::pair(Sizes({10, 10, 10}), Sizes({30, 30, 30})));
  EXPECT_EQ(sizes(Operation::kReduceScatter), std::pair(Sizes({30, 30, 30}), Sizes({10, 10, 10})));
  EXPECT_EQ(sizes(Operation::kAllToAll), std::pair(Sizes({30, 30, 30}), Sizes({30, 30, 30})));
  EXPECT_EQ(sizes(Operation::kBarrier), std::pair(Sizes({0, 0, 0}), Sizes({0, 0, 0})));
  EXPECT_EQ(sizes(Operation::kSend), std::pair(Sizes({0, 0, 0}), Sizes({0, 0, 0})));
}

TEST(ProblemTest, BlocksOfDifferentSizesAreContiguous) {
  const Problem problem = uneven(Operation::kAllGather, {5, 0, 7});
  EXPECT_EQ(by_rank(problem, block_count), (Sizes{5, 0, 7}));
  EXPECT_EQ(by_rank(problem, block_offset), (Sizes{0, 5, 5}));
  EXPECT_EQ(by_rank(problem, output_size), (Sizes{12, 12, 12}));
  EXPECT_EQ(by_rank(uniform(Operation::kAllGather, 4), block_offset), (Sizes{0, 4, 8}));
}

TEST(ProblemTest, AnAllToAllSendsRowsAndReceivesColumns) {
  const Problem problem = uneven(Operation::kAllToAll, {1, 2, 3, 10, 20, 30, 100, 200, 300});
  EXPECT_EQ(send_count(problem, 1, 2), Elements(30));
  EXPECT_EQ(send_offset(problem, 1, 2), Elements(30));
  EXPECT_EQ(receive_offset(problem, 1, 2), Elements(3));
  EXPECT_EQ(by_rank(problem, input_size), (Sizes{6, 60, 600}));
  EXPECT_EQ(by_rank(problem, output_size), (Sizes{111, 222, 333}));
  const Problem alike = uniform(Operation::kAllToAll, 4);
  EXPECT_EQ(send_count(alike, 1, 2), Elements(4));
  EXPECT_EQ(send_offset(alike, 1, 2), Elements(8));
  EXPECT_EQ(receive_offset(alike, 1, 2), Elements(4));
}

TEST(ProblemTest, RanksOfAHostAreNeighboursAndTheLastHostMayBeSmaller) {
  Problem problem = uniform(Operation::kBarrier, 0);
  problem.ranks = 5;
  problem.ranks_per_host = 3;
  EXPECT_EQ(host_of(problem, 2), 0);
  EXPECT_EQ(host_of(problem, 3), 1);
  EXPECT_EQ(host_ranks(problem, 1), (Ranks{.first = 0, .count = 3}));
  EXPECT_EQ(host_ranks(problem, 4), (Ranks{.first = 3, .count = 2}));
}

TEST(ProblemTest, OutOfPlaceOnlyTheRootOfABroadcastSharesItsBuffer) {
  for (const Operation operation : kAllCollectives) {
    for (Rank r = 0; r < 3; ++r) {
      const bool shared = operation == Operation::kBroadcast && r == 1;
      EXPECT_EQ(placement(uniform(operation, 10), r).has_value(), shared) << name_of(operation);
    }
  }
}

TEST(ProblemTest, InPlaceBlocksLieInsideTheWholeBuffer) {
  const auto placed = [](Operation operation, Rank rank) {
    Problem problem = uniform(operation, 10);
    problem.in_place = true;
    return placement(problem, rank);
  };
  const Placement same_place{};
  const Placement input_inside{.input = Elements(10)};
  const Placement output_inside{.output = Elements(10)};
  EXPECT_EQ(placed(Operation::kAllReduce, 2), same_place);
  EXPECT_EQ(placed(Operation::kBroadcast, 1), same_place);
  EXPECT_EQ(placed(Operation::kReduce, 1), same_place);
  EXPECT_EQ(placed(Operation::kAllGather, 1), input_inside);
  EXPECT_EQ(placed(Operation::kGather, 1), input_inside);
  EXPECT_EQ(placed(Operation::kReduceScatter, 1), output_inside);
  EXPECT_EQ(placed(Operation::kScatter, 1), output_inside);
  for (const Operation rooted : {Operation::kBroadcast,
                                 Operation::kReduce,
                                 Operation::kGather,
                                 Operation::kScatter,
                                 Operation::kAllToAll,
                                 Operation::kBarrier}) {
    EXPECT_EQ(placed(rooted, 2), std::nullopt) << name_of(rooted);
  }
}

}  // namespace
}  // namespace peal::schedule
