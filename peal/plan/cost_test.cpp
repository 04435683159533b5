// Checks that schedules have the costs that the headers of the algorithms state, and operations the
// costs of their contracts in peal/group (collectives.h). For several hosts of several ranks see
// two_level/cost_test.cpp.
#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "peal/plan/choose.h"
#include "peal/plan/plan.h"
#include "peal/plan/testing/costs.h"
#include "peal/schedule/problem.h"

namespace peal::plan {
namespace {

using schedule::Part;
using schedule::Problem;
using schedule::Step;

// ---- messages

/// What rank `self` of `n` sends. The root is rank 0.
using Formula = std::function<Cost(int n, Rank self)>;

void expect_cost(std::string_view algorithm, Operation operation, const Formula& formula) {
  for (const int n : kRanks) {
    const Problem problem = problem_of(operation, n);
    if (!algorithm_named(algorithm).applies(problem)) continue;
    for (Rank self = 0; self < n; ++self) {
      EXPECT_EQ(cost_of(algorithm_named(algorithm).plan(problem, self)), formula(n, self))
          << algorithm << ", " << name_of(operation) << ", rank " << self << " of " << n;
    }
  }
}

TEST(CostTest, RingSendsWhatItsHeaderStates) {
  const Formula once = [](int n, Rank) { return Cost{n - 1, kBlock * (n - 1)}; };
  expect_cost("ring", Operation::kReduceScatter, once);
  expect_cost("ring", Operation::kAllGather, once);
  expect_cost("ring", Operation::kAllReduce, [](int n, Rank) {
    return Cost{2 * (n - 1), kBlock * 2 * (n - 1)};
  });
  expect_cost("ring", Operation::kReduce, [](int n, Rank self) {
    const int blocks = self == 0 ? n - 1 : n;
    return Cost{blocks, kBlock * blocks};
  });
  expect_cost("ring", Operation::kBroadcast, [](int n, Rank self) {
    return self == n - 1 ? Cost{} : Cost{1, kBlock * n};
  });
}

/// The ranks beyond a power of two: each odd rank gives its value to an even rank.
struct Folded {
  int surplus;
  Rank self;

  bool gives_value() const { return self < 2 * surplus && self % 2 == 1; }
  bool receives_value() const { return self < 2 * surplus && self % 2 == 0; }
};

Cost with_fold(int n, Rank self, Cost core) {
  const Folded fold{n - (1 << log2_floor(n)), self};
  if (fold.gives_value()) return {1, kBlock * n};
  if (fold.receives_value()) return {core.messages + 1, core.sent + kBlock * n};
  return core;
}

TEST(CostTest, RecursiveDoublingSendsWhatItsHeaderStates) {
  expect_cost("recursive_doubling", Operation::kAllReduce, [](int n, Rank self) {
    return with_fold(n, self, {log2_floor(n), kBlock * n * log2_floor(n)});
  });
  expect_cost("recursive_doubling", Operation::kBarrier, [](int n, Rank) {
    return Cost{log2_ceil(n), Elements(log2_ceil(n))};
  });
  for (const int n : kRanks) {
    const Problem problem = problem_of(Operation::kAllGather, n);
    for (Rank self = 0; self < n; ++self) {
      const Cost cost = cost_of(algorithm_named("recursive_doubling").plan(problem, self));
      EXPECT_EQ(cost.sent, kBlock * (n - 1));
      EXPECT_GE(cost.messages, log2_ceil(n));
      EXPECT_LE(cost.messages, 2 * log2_ceil(n));
    }
  }
}

TEST(CostTest, HalvingDoublingSendsWhatItsHeaderStates) {
  expect_cost("halving_doubling", Operation::kAllReduce, [](int n, Rank self) {
    const int core = 1 << log2_floor(n);
    const Elements sent = kBlock * n * 2 / core * (core - 1);
    return with_fold(n, self, {2 * log2_floor(n), sent});
  });
  expect_cost("halving_doubling", Operation::kReduceScatter, [](int n, Rank) {
    return Cost{log2_floor(n), kBlock * (n - 1)};
  });
}

/// The size of the subtree of a number, and how many children the number has.
int subtree(int n, int number) { return number == 0 ? n : std::min(number & -number, n - number); }
int children(int n, int number) { return log2_ceil(subtree(n, number)); }

TEST(CostTest, BinomialTreeSendsWhatItsHeaderStates) {
  expect_cost("binomial_tree", Operation::kBroadcast, [](int n, Rank self) {
    return Cost{children(n, self), kBlock * n * children(n, self)};
  });
  expect_cost("binomial_tree", Operation::kReduce, [](int n, Rank self) {
    return self == 0 ? Cost{} : Cost{1, kBlock * n};
  });
  expect_cost("binomial_tree", Operation::kGather, [](int n, Rank self) {
    return self == 0 ? Cost{} : Cost{1, kBlock * subtree(n, self)};
  });
  expect_cost("binomial_tree", Operation::kScatter, [](int n, Rank self) {
    return Cost{children(n, self), kBlock * (subtree(n, self) - 1)};
  });
  expect_cost("binomial_tree", Operation::kBarrier, [](int n, Rank self) {
    const int messages = children(n, self) + (self == 0 ? 0 : 1);
    return Cost{messages, Elements(messages)};
  });
}

TEST(CostTest, PairwiseSendsWhatItsHeaderStates) {
  const Formula to_all = [](int n, Rank) { return Cost{n - 1, kBlock * (n - 1)}; };
  expect_cost("pairwise", Operation::kAllToAll, to_all);
  expect_cost("pairwise", Operation::kAllGather, to_all);
  expect_cost("pairwise", Operation::kReduceScatter, to_all);
  expect_cost("pairwise", Operation::kAllReduce, [](int n, Rank) {
    return Cost{n - 1, kBlock * n * (n - 1)};
  });
  expect_cost("pairwise", Operation::kBarrier, [](int n, Rank) {
    return Cost{n - 1, Elements(n - 1)};
  });
  expect_cost("pairwise", Operation::kBroadcast, [](int n, Rank self) {
    return self == 0 ? Cost{n - 1, kBlock * n * (n - 1)} : Cost{};
  });
  expect_cost("pairwise", Operation::kScatter, [](int n, Rank self) {
    return self == 0 ? Cost{n - 1, kBlock * (n - 1)} : Cost{};
  });
  expect_cost("pairwise", Operation::kReduce, [](int n, Rank self) {
    return self == 0 ? Cost{} : Cost{1, kBlock * n};
  });
  expect_cost("pairwise", Operation::kGather, [](int, Rank self) {
    return self == 0 ? Cost{} : Cost{1, kBlock};
  });
}

// ---- the algorithms chosen between hosts, against the contracts of the operations

/// Limits for the messages and elements that any rank sends.
using Bound = std::function<Cost(int n)>;

/// Elements of one byte; `block` as in problem_of.
void expect_at_most(Operation operation, Elements block, const Bound& bound) {
  for (const int n : kRanks) {
    Problem problem = problem_of(operation, n);
    problem.count = problem.count.value / kBlock.value * block;
    problem.stage_limit = block * n * 8;
    Cost most;
    for (Rank self = 0; self < n; ++self) {
      const Cost cost = cost_of(choose(built_in_choices(), problem, 1_B).plan(problem, self));
      most.messages = std::max(most.messages, cost.messages);
      most.sent = std::max(most.sent, cost.sent);
    }
    const Cost stated = bound(n);
    EXPECT_LE(most.messages, stated.messages) << name_of(operation) << ", " << n << " ranks";
    EXPECT_LE(most.sent, stated.sent) << name_of(operation) << ", " << n << " ranks";
  }
}

TEST(CostTest, SmallOperationsSendWhatTheirContractsState) {
  const auto b = kBlock;
  expect_at_most(Operation::kBroadcast, b, [&](int n) {
    return Cost{log2_ceil(n), b * n * log2_ceil(n)};
  });
  expect_at_most(Operation::kAllReduce, b, [&](int n) {
    const int messages = n <= 4 ? n - 1 : log2_ceil(n);
    return Cost{messages, b * n * messages};
  });
  expect_at_most(Operation::kReduce, b, [&](int n) { return Cost{1, b * n}; });
  for (const Operation operation : {Operation::kScatter, Operation::kGather}) {
    expect_at_most(operation, b, [&](int n) { return Cost{log2_ceil(n), b * (n - 1)}; });
  }
  expect_at_most(Operation::kAllGather, b, [&](int n) {
    return Cost{2 * log2_ceil(n), b * (n - 1)};
  });
  expect_at_most(Operation::kReduceScatter, b, [&](int n) {
    const bool power = std::has_single_bit(static_cast<unsigned>(n));
    return Cost{power ? log2_ceil(n) : n - 1, b * (n - 1)};
  });
  expect_at_most(Operation::kAllToAll, b, [&](int n) { return Cost{n - 1, b * (n - 1)}; });
  expect_at_most(Operation::kBarrier, b, [&](int n) {
    return Cost{log2_ceil(n), Elements(log2_ceil(n))};
  });
}

TEST(CostTest, LargeOperationsSendWhatTheirContractsState) {
  const Elements b = kBlock * 4096;
  constexpr int kPieces = std::numeric_limits<int>::max();
  expect_at_most(Operation::kBroadcast, b, [&](int n) { return Cost{kPieces, b * n}; });
  expect_at_most(Operation::kAllReduce, b, [&](int n) {
    return Cost{2 * (n - 1), b * 2 * (n - 1)};
  });
  expect_at_most(Operation::kReduce, b, [&](int n) { return Cost{n, b * n}; });
  for (const Operation operation : {Operation::kScatter,
                                    Operation::kGather,
                                    Operation::kAllGather,
                                    Operation::kReduceScatter,
                                    Operation::kAllToAll}) {
    expect_at_most(operation, b, [&](int n) { return Cost{n - 1, b * (n - 1)}; });
  }
}

TEST(CostTest, MediumAllReducesSendWhatTheirContractStates) {
  for (const int n : kRanks) {
    if (n <= 4) continue;
    Problem problem = problem_of(Operation::kAllReduce, n);
    problem.count = Elements(std::int64_t{512} << 10);
    for (Rank self = 0; self < n; ++self) {
      const Cost cost = cost_of(choose(built_in_choices(), problem, 1_B).plan(problem, self));
      EXPECT_LE(cost.messages, 2 * log2_ceil(n));
      EXPECT_LE(cost.sent, problem.count * 3) << n << " ranks";
      if (std::has_single_bit(static_cast<unsigned>(n))) {
        EXPECT_EQ(cost.sent, problem.count * 2 / n * (n - 1));
      }
    }
  }
}

// ---- memory

/// Signals of a rank whose memory others touch.
constexpr int kOpening = 1;

Part direct_part(Operation operation, int n, bool registered, Elements limit) {
  Problem problem = problem_of(operation, n);
  problem.ranks_per_host = n;
  if (registered) problem.registered = schedule::all_registered(n);
  problem.stage_limit = limit;
  return algorithm_named("direct").plan(problem, 1);
}

void expect_registered(Operation operation, std::int64_t blocks_moved_besides_n, int times_n) {
  for (const int n : kRanks) {
    const Part part = direct_part(operation, n, true, Elements(1 << 20));
    EXPECT_EQ(signals_of(part), 2) << name_of(operation);
    EXPECT_EQ(moved_by(part), kBlock * (times_n * n + blocks_moved_besides_n))
        << name_of(operation) << ", " << n << " ranks";
    EXPECT_EQ(part.stage, Elements(0));
  }
}

TEST(CostTest, DirectOnRegisteredMemoryMovesWhatItsHeaderStates) {
  expect_registered(Operation::kAllReduce, 0, 2);
  expect_registered(Operation::kReduce, 1, 1);
  expect_registered(Operation::kAllGather, 1, 1);
  expect_registered(Operation::kReduceScatter, 1, 1);
  expect_registered(Operation::kAllToAll, 0, 2);
}

TEST(CostTest, StagedDirectMovesWhatItsHeaderStates) {
  for (const int n : kRanks) {
    const Elements whole = kBlock * n;
    const Part in_one_piece = direct_part(Operation::kAllReduce, n, false, whole * 8);
    EXPECT_EQ(signals_of(in_one_piece), kOpening + 1);
    EXPECT_EQ(moved_by(in_one_piece), whole * (n + 3));
  }
  const Elements whole = kBlock * 2;
  const Part in_four = direct_part(Operation::kAllReduce, 2, false, whole / 2);
  EXPECT_EQ(signals_of(in_four), kOpening + 4);
  EXPECT_EQ(moved_by(in_four), whole * (2 + 3));
}

TEST(CostTest, DirectSlicesLargeReductions) {
  constexpr Elements kLarge(1 << 20);
  for (const int n : {4, 8}) {
    Problem problem{.operation = Operation::kAllReduce,
                    .ranks = n,
                    .ranks_per_host = n,
                    .count = kLarge,
                    .stage_limit = kLarge * 3 / 8};
    const Part part = algorithm_named("direct").plan(problem, 1);
    EXPECT_EQ(signals_of(part), kOpening + 8 + 1) << "eight pieces, and the last copied out";
    // Reads and writes: all slices but this rank's are staged, this rank's slice is reduced into
    // output and stage, and the rest is copied out.
    EXPECT_EQ(moved_by(part), kLarge * 5 - kLarge * 2 / n);
  }
}

TEST(CostTest, TheRootOnOneHostDoesNotWaitIfItOnlySends) {
  for (const Operation operation : {Operation::kBroadcast, Operation::kScatter}) {
    Problem problem = problem_of(operation, 4);
    problem.ranks_per_host = 4;
    const Part part = algorithm_named("direct").plan(problem, 0);
    EXPECT_EQ(signals_of(part), kOpening + 1);
    EXPECT_TRUE(std::none_of(part.steps.begin(), part.steps.end(), [](const Step& step) {
      const auto* wait = std::get_if<schedule::Wait>(&step);
      return wait != nullptr && wait->value > 0;
    }));
  }
}

TEST(CostTest, ABarrierOnOneHostIsOneSynchronisation) {
  EXPECT_EQ(direct_part(Operation::kBarrier, 4, false, Elements(0)).steps.size(), 2U);
}

}  // namespace
}  // namespace peal::plan
