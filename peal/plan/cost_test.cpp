// That the schedules cost what the headers of the algorithms say, and operations what their
// contracts in peal/group say (collectives.h, block_collectives.h).
#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "peal/plan/blocks.h"
#include "peal/plan/plan.h"
#include "peal/plan/testing/problems.h"
#include "peal/schedule/problem.h"

namespace peal::plan {
namespace {

using schedule::Access;
using schedule::Move;
using schedule::Part;
using schedule::Problem;
using schedule::Signal;
using schedule::Slice;
using schedule::Space;
using schedule::Step;

constexpr std::array kRanks = {2, 3, 4, 5, 6, 7, 8, 9, 16};
/// Of a rank's block; divisible by every power of two that is needed.
constexpr Elements kBlock(960);

int log2_floor(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }
int log2_ceil(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }

std::vector<Move> moves_of(const Part& part) {
  std::vector<Move> moves;
  for (const Step& step : part.steps) {
    if (const auto* move = std::get_if<Move>(&step)) moves.push_back(*move);
  }
  return moves;
}

bool is_whole(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduce ||
         operation == Operation::kBroadcast;
}

/// Blocks of kBlock; where there are no blocks, a buffer as large as all together.
Problem problem_of(Operation operation, int ranks) {
  const bool empty = operation == Operation::kBarrier;
  return {.operation = operation,
          .ranks = ranks,
          .count = empty ? Elements(0) : kBlock * (is_whole(operation) ? ranks : 1),
          .in_place = operation == Operation::kBroadcast,
          .stage_limit = Elements(1 << 20)};
}

// ---- messages

struct Cost {
  int messages = 0;
  Elements sent = {};

  friend bool operator==(const Cost&, const Cost&) = default;
  friend void PrintTo(const Cost& cost, std::ostream* out) {
    *out << cost.messages << " messages, " << cost.sent.value << " elements";
  }
};

Cost cost_of(const Part& part) {
  Cost cost;
  for (const Move& move : moves_of(part)) {
    if (move.to[0].space != Space::kWire) continue;
    ++cost.messages;
    cost.sent += move.count;
  }
  return cost;
}

/// What rank `self` of `n` sends, the root being rank 0.
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

TEST(CostTest, RingSendsWhatItsHeaderSays) {
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

/// Of the ranks beyond a power of two: the odd ones leave their values with the even ones.
struct Folded {
  int surplus;
  Rank self;

  bool leaves() const { return self < 2 * surplus && self % 2 == 1; }
  bool takes() const { return self < 2 * surplus && self % 2 == 0; }
};

Cost with_fold(int n, Rank self, Cost core) {
  const Folded fold{n - (1 << log2_floor(n)), self};
  if (fold.leaves()) return {1, kBlock * n};
  if (fold.takes()) return {core.messages + 1, core.sent + kBlock * n};
  return core;
}

TEST(CostTest, RecursiveDoublingSendsWhatItsHeaderSays) {
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

TEST(CostTest, HalvingDoublingSendsWhatItsHeaderSays) {
  expect_cost("halving_doubling", Operation::kAllReduce, [](int n, Rank self) {
    const int core = 1 << log2_floor(n);
    const Elements sent = kBlock * n * 2 / core * (core - 1);
    return with_fold(n, self, {2 * log2_floor(n), sent});
  });
  expect_cost("halving_doubling", Operation::kReduceScatter, [](int n, Rank) {
    return Cost{log2_floor(n), kBlock * (n - 1)};
  });
}

/// How many numbers the subtree of a number has, and how many children it has itself.
int subtree(int n, int number) { return number == 0 ? n : std::min(number & -number, n - number); }
int children(int n, int number) { return log2_ceil(subtree(n, number)); }

TEST(CostTest, BinomialTreeSendsWhatItsHeaderSays) {
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

TEST(CostTest, PairwiseSendsWhatItsHeaderSays) {
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

// ---- between hosts of several ranks each

/// What leaves a host and what comes to it.
struct Traffic {
  Elements sent = {};
  Elements received = {};
};

/// By host.
std::vector<Traffic> traffic_of(const Algorithm& algorithm, const Problem& problem) {
  std::vector<Traffic> hosts(static_cast<std::size_t>(problem.ranks / problem.ranks_per_host));
  const auto host = [&](Rank rank) -> Traffic& {
    return hosts[static_cast<std::size_t>(host_of(problem, rank))];
  };
  for (Rank self = 0; self < problem.ranks; ++self) {
    for (const Move& move : moves_of(algorithm.plan(problem, self))) {
      if (move.to[0].space != Space::kWire) continue;
      const Rank peer = move.to[0].ranks.first;
      if (host_of(problem, peer) == host_of(problem, self)) continue;
      host(self).sent += move.count;
      host(peer).received += move.count;
    }
  }
  return hosts;
}

struct Levels {
  int hosts = 0;
  int local = 0;
  friend void PrintTo(const Levels& levels, std::ostream* out) {
    *out << levels.hosts << " hosts of " << levels.local;
  }
};
constexpr std::array kLevels = {
    Levels{2, 2}, Levels{2, 3}, Levels{3, 2}, Levels{4, 2}, Levels{3, 5}, Levels{8, 2}};

Problem problem_on(const Levels& levels, Operation operation, Rank root) {
  Problem problem = problem_of(operation, levels.hosts * levels.local);
  problem.ranks_per_host = levels.local;
  problem.root = root;
  return problem;
}

/// The most that any rank sends, where ranks are not of one host.
Cost most_sent_by_a_rank(const Algorithm& algorithm, const Problem& problem) {
  Cost most;
  for (Rank self = 0; self < problem.ranks; ++self) {
    const Cost cost = cost_of(algorithm.plan(problem, self));
    most.messages = std::max(most.messages, cost.messages);
    most.sent = std::max(most.sent, cost.sent);
  }
  return most;
}

TEST(CostTest, OnTwoLevelsEachHostSendsItsShareOnceAndAllItsRanksAlike) {
  const Algorithm& two_level = algorithm_named("two_level");
  for (const Levels& levels : kLevels) {
    const auto [h, n] = levels;
    for (const Operation operation :
         {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter}) {
      const int times = operation == Operation::kAllReduce ? 2 : 1;
      const Elements others = kBlock * n * (h - 1) * times;  // (h-1)/h of the whole
      const Problem problem = problem_on(levels, operation, 0);
      for (const Traffic& traffic : traffic_of(two_level, problem)) {
        EXPECT_EQ(traffic.sent, others) << testing::PrintToString(levels) << name_of(operation);
        EXPECT_EQ(traffic.received, others);
      }
      EXPECT_EQ(most_sent_by_a_rank(two_level, problem), (Cost{times * (h - 1), others / n}));
    }
  }
}

TEST(CostTest, OnTwoLevelsEachHostReceivesABroadcastOnceWhoeverIsTheRoot) {
  const Algorithm& two_level = algorithm_named("two_level");
  for (const Levels& levels : kLevels) {
    const auto [h, n] = levels;
    for (Rank root = 0; root < h * n; ++root) {
      for (const Elements limit : {Elements(1 << 20), Elements(kGrain * n * 8)}) {
        Problem problem = problem_on(levels, Operation::kBroadcast, root);
        problem.stage_limit = limit;  // at once, and in pieces
        const std::vector<Traffic> traffic = traffic_of(two_level, problem);
        for (int host = 0; host < h; ++host) {
          const bool is_first = host == host_of(problem, root);
          EXPECT_EQ(traffic[static_cast<std::size_t>(host)].received,
                    is_first ? Elements(0) : problem.count);
        }
        const int times = limit == Elements(1 << 20) ? log2_ceil(h) : 1;
        EXPECT_EQ(most_sent_by_a_rank(two_level, problem).sent, problem.count / n * times)
            << testing::PrintToString(levels);
      }
    }
  }
}

TEST(CostTest, OnTwoLevelsEachHostSendsItsSumOnce) {
  const Algorithm& two_level = algorithm_named("two_level");
  for (const Levels& levels : kLevels) {
    const auto [h, n] = levels;
    for (Rank root = 0; root < h * n; ++root) {
      const Problem problem = problem_on(levels, Operation::kReduce, root);
      const std::vector<Traffic> traffic = traffic_of(two_level, problem);
      for (int host = 0; host < h; ++host) {
        const bool is_last = host == host_of(problem, root);
        const auto& [sent, received] = traffic[static_cast<std::size_t>(host)];
        EXPECT_EQ(sent, kBlock * n * (is_last ? h - 1 : h)) << testing::PrintToString(levels);
        EXPECT_EQ(received, kBlock * n * (h - 1) * (is_last ? 2 : 1));
      }
      EXPECT_EQ(most_sent_by_a_rank(two_level, problem), (Cost{h, kBlock * h}));
    }
  }
}

TEST(CostTest, OnTwoLevelsABarrierIsBetweenTheFirstRanksOfHosts) {
  const Algorithm& two_level = algorithm_named("two_level");
  for (const Levels& levels : kLevels) {
    const Problem problem = problem_on(levels, Operation::kBarrier, 0);
    for (Rank self = 0; self < problem.ranks; ++self) {
      const int tokens = self % levels.local == 0 ? log2_ceil(levels.hosts) : 0;
      EXPECT_EQ(cost_of(two_level.plan(problem, self)), (Cost{tokens, Elements(tokens)}));
    }
  }
}

TEST(CostTest, OnTwoLevelsWhatIsSentDoesNotDependOnWhereTheMemoryLies) {
  const Algorithm& two_level = algorithm_named("two_level");
  const auto sent_by = [&](const Problem& problem, Rank self) {
    std::vector<std::pair<Slice, Elements>> messages;
    for (const Move& move : moves_of(two_level.plan(problem, self))) {
      if (move.to[0].space == Space::kWire) messages.emplace_back(move.to[0], move.count);
    }
    return messages;
  };
  for (const Operation operation : kAllCollectives) {
    for (Problem problem : problems(operation, 6)) {
      if (problem.access == Access::kRegistered || !two_level.applies(problem)) continue;
      for (Rank self = 0; self < problem.ranks; ++self) {
        problem.access = Access::kForeign;
        const auto foreign = sent_by(problem, self);
        problem.access = Access::kRegistered;
        EXPECT_EQ(sent_by(problem, self), foreign) << describe(problem);
      }
    }
  }
}

// ---- what is chosen between hosts, as the contracts of the operations have it

/// At most so many messages by any rank, and so many elements.
using Bound = std::function<Cost(int n)>;

/// Elements of one byte; `block` as in problem_of.
void expect_at_most(Operation operation, Elements block, const Bound& bound) {
  for (const int n : kRanks) {
    Problem problem = problem_of(operation, n);
    problem.count = problem.count.value / kBlock.value * block;
    problem.stage_limit = block * n * 8;
    Cost most;
    for (Rank self = 0; self < n; ++self) {
      const Cost cost = cost_of(choose(problem, 1_B).plan(problem, self));
      most.messages = std::max(most.messages, cost.messages);
      most.sent = std::max(most.sent, cost.sent);
    }
    const Cost stated = bound(n);
    EXPECT_LE(most.messages, stated.messages) << name_of(operation) << ", " << n << " ranks";
    EXPECT_LE(most.sent, stated.sent) << name_of(operation) << ", " << n << " ranks";
  }
}

TEST(CostTest, SmallOperationsSendWhatTheirContractsSay) {
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

TEST(CostTest, LargeOperationsSendWhatTheirContractsSay) {
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

TEST(CostTest, AllReducesOfMiddleSizeSendWhatTheirContractSays) {
  for (const int n : kRanks) {
    if (n <= 4) continue;
    Problem problem = problem_of(Operation::kAllReduce, n);
    problem.count = Elements(std::int64_t{512} << 10);
    for (Rank self = 0; self < n; ++self) {
      const Cost cost = cost_of(choose(problem, 1_B).plan(problem, self));
      EXPECT_LE(cost.messages, 2 * log2_ceil(n));
      EXPECT_LE(cost.sent, problem.count * 3) << n << " ranks";
      if (std::has_single_bit(static_cast<unsigned>(n))) {
        EXPECT_EQ(cost.sent, problem.count * 2 / n * (n - 1));
      }
    }
  }
}

// ---- memory

/// Elements that a part reads and writes.
Elements moved_by(const Part& part) {
  Elements moved;
  for (const Move& move : moves_of(part)) {
    for (const Slice& slice : move.from) moved += move.count * slice.ranks.count;
    for (const Slice& slice : move.to) moved += move.count * slice.ranks.count;
  }
  return moved;
}

std::int64_t signals_of(const Part& part) {
  return std::count_if(part.steps.begin(), part.steps.end(), [](const Step& step) {
    return std::holds_alternative<Signal>(step);
  });
}

Part direct_part(Operation operation, int n, Access access, Elements limit) {
  Problem problem = problem_of(operation, n);
  problem.ranks_per_host = n;
  problem.access = access;
  problem.stage_limit = limit;
  return algorithm_named("direct").plan(problem, 1);
}

void expect_registered(Operation operation, std::int64_t blocks_moved_besides_n, int times_n) {
  for (const int n : kRanks) {
    const Part part = direct_part(operation, n, Access::kRegistered, Elements(1 << 20));
    EXPECT_EQ(signals_of(part), 2) << name_of(operation);
    EXPECT_EQ(moved_by(part), kBlock * (times_n * n + blocks_moved_besides_n))
        << name_of(operation) << ", " << n << " ranks";
    EXPECT_EQ(part.stage, Elements(0));
  }
}

TEST(CostTest, DirectOnRegisteredMemoryMovesWhatItsHeaderSays) {
  expect_registered(Operation::kAllReduce, 0, 2);
  expect_registered(Operation::kReduce, 1, 1);
  expect_registered(Operation::kAllGather, 1, 1);
  expect_registered(Operation::kReduceScatter, 1, 1);
  expect_registered(Operation::kAllToAll, 0, 2);
}

TEST(CostTest, DirectThroughTheStageMovesWhatItsHeaderSays) {
  for (const int n : kRanks) {
    const Elements whole = kBlock * n;
    const Part in_one_piece = direct_part(Operation::kAllReduce, n, Access::kForeign, whole * 8);
    EXPECT_EQ(signals_of(in_one_piece), 1);
    EXPECT_EQ(moved_by(in_one_piece), whole * (n + 3));
  }
  const Elements whole = kBlock * 2;
  const Part in_four = direct_part(Operation::kAllReduce, 2, Access::kForeign, whole / 2);
  EXPECT_EQ(signals_of(in_four), 4);
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
    EXPECT_EQ(signals_of(part), 8 + 1) << "eight pieces, and the last copied out";
    // Reads and writes: all but the own slice is staged, the own slice reduced into output and
    // stage, and the rest copied out.
    EXPECT_EQ(moved_by(part), kLarge * 5 - kLarge * 2 / n);
  }
}

TEST(CostTest, ARootOfOneHostWaitsForNobodyWhenItOnlyGives) {
  for (const Operation operation : {Operation::kBroadcast, Operation::kScatter}) {
    Problem problem = problem_of(operation, 4);
    problem.ranks_per_host = 4;
    const Part part = algorithm_named("direct").plan(problem, 0);
    EXPECT_EQ(signals_of(part), 1);
    EXPECT_TRUE(std::none_of(part.steps.begin(), part.steps.end(), [](const Step& step) {
      const auto* wait = std::get_if<schedule::Wait>(&step);
      return wait != nullptr && wait->value > 0;
    }));
  }
}

TEST(CostTest, ABarrierOfOneHostIsOneSynchronisation) {
  EXPECT_EQ(direct_part(Operation::kBarrier, 4, Access::kForeign, Elements(0)).steps.size(), 2U);
}

}  // namespace
}  // namespace peal::plan
