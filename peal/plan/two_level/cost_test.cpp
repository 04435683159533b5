// Checks that schedules on two levels have the costs that peal/plan/two_level.h states.
#include <algorithm>
#include <array>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "peal/plan/blocks.h"
#include "peal/plan/plan.h"
#include "peal/plan/testing/costs.h"
#include "peal/plan/testing/problems.h"
#include "peal/schedule/problem.h"

namespace peal::plan::two_level {
namespace {

using schedule::Move;
using schedule::Problem;
using schedule::Slice;
using schedule::Space;

/// What a host sends to other hosts and receives from them.
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

struct Shape {
  int hosts = 0;
  int local = 0;
  friend void PrintTo(const Shape& shape, std::ostream* out) {
    *out << shape.hosts << " hosts of " << shape.local;
  }
};
constexpr std::array kShapes = {
    Shape{2, 2}, Shape{2, 3}, Shape{3, 2}, Shape{4, 2}, Shape{3, 5}, Shape{8, 2}};

Problem problem_on(const Shape& shape, Operation operation, Rank root) {
  Problem problem = problem_of(operation, shape.hosts * shape.local);
  problem.ranks_per_host = shape.local;
  problem.root = root;
  return problem;
}

/// The most that any rank sends to other hosts.
Cost most_sent_by_a_rank(const Algorithm& algorithm, const Problem& problem) {
  Cost most;
  for (Rank self = 0; self < problem.ranks; ++self) {
    const Cost cost = cost_of(algorithm.plan(problem, self));
    most.messages = std::max(most.messages, cost.messages);
    most.sent = std::max(most.sent, cost.sent);
  }
  return most;
}

TEST(TwoLevelCostTest, EachHostSendsItsShareOnceAndItsRanksSendEqually) {
  const Algorithm& two_level = algorithm_named("two_level");
  for (const Shape& shape : kShapes) {
    const auto [h, n] = shape;
    for (const Operation operation :
         {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter}) {
      const int times = operation == Operation::kAllReduce ? 2 : 1;
      const Elements others = kBlock * n * (h - 1) * times;  // (h-1)/h of the whole
      const Problem problem = problem_on(shape, operation, 0);
      for (const Traffic& traffic : traffic_of(two_level, problem)) {
        EXPECT_EQ(traffic.sent, others) << testing::PrintToString(shape) << name_of(operation);
        EXPECT_EQ(traffic.received, others);
      }
      EXPECT_EQ(most_sent_by_a_rank(two_level, problem), (Cost{times * (h - 1), others / n}));
    }
  }
}

TEST(TwoLevelCostTest, EachHostReceivesABroadcastOnceForEveryRoot) {
  const Algorithm& two_level = algorithm_named("two_level");
  for (const Shape& shape : kShapes) {
    const auto [h, n] = shape;
    for (Rank root = 0; root < h * n; ++root) {
      for (const Elements limit : {Elements(1 << 20), Elements(kGrain * n * 8)}) {
        Problem problem = problem_on(shape, Operation::kBroadcast, root);
        problem.stage_limit = limit;  // at once, and in pieces
        const std::vector<Traffic> traffic = traffic_of(two_level, problem);
        for (int host = 0; host < h; ++host) {
          const bool is_first = host == host_of(problem, root);
          EXPECT_EQ(traffic[static_cast<std::size_t>(host)].received,
                    is_first ? Elements(0) : problem.count);
        }
        const int times = limit == Elements(1 << 20) ? log2_ceil(h) : 1;
        EXPECT_EQ(most_sent_by_a_rank(two_level, problem).sent, problem.count / n * times)
            << testing::PrintToString(shape);
      }
    }
  }
}

TEST(TwoLevelCostTest, EachHostSendsItsPartOfAReduceOnce) {
  const Algorithm& two_level = algorithm_named("two_level");
  for (const Shape& shape : kShapes) {
    const auto [h, n] = shape;
    for (Rank root = 0; root < h * n; ++root) {
      const Problem problem = problem_on(shape, Operation::kReduce, root);
      const std::vector<Traffic> traffic = traffic_of(two_level, problem);
      for (int host = 0; host < h; ++host) {
        const bool is_last = host == host_of(problem, root);
        const auto& [sent, received] = traffic[static_cast<std::size_t>(host)];
        EXPECT_EQ(sent, kBlock * n * (is_last ? h - 1 : h)) << testing::PrintToString(shape);
        EXPECT_EQ(received, kBlock * n * (h - 1) * (is_last ? 2 : 1));
      }
      EXPECT_EQ(most_sent_by_a_rank(two_level, problem), (Cost{h, kBlock * h}));
    }
  }
}

TEST(TwoLevelCostTest, OnlyTheFirstRanksOfHostsSendInABarrier) {
  const Algorithm& two_level = algorithm_named("two_level");
  for (const Shape& shape : kShapes) {
    const Problem problem = problem_on(shape, Operation::kBarrier, 0);
    for (Rank self = 0; self < problem.ranks; ++self) {
      const int tokens = self % shape.local == 0 ? log2_ceil(shape.hosts) : 0;
      EXPECT_EQ(cost_of(two_level.plan(problem, self)), (Cost{tokens, Elements(tokens)}));
    }
  }
}

/// The messages and signals of h hosts for a buffer in c pieces.
struct Staged {
  Operation operation;
  int (*messages)(int h, int c);  // of each rank; in a reduce, of ranks not on the root's host
  int (*signals)(int h, int c);
};
constexpr std::array kStaged = {Staged{Operation::kAllReduce,
                                       [](int h, int c) { return 2 * (h - 1) * c; },
                                       [](int h, int c) { return c + 2 * h - 1; }},
                                Staged{Operation::kReduceScatter,
                                       [](int h, int c) { return (h - 1) * c; },
                                       [](int h, int c) { return h * c; }},
                                Staged{Operation::kAllGather,
                                       [](int h, int c) { return (h - 1) * c; },
                                       [](int h, int c) { return h * c; }},
                                Staged{Operation::kReduce,
                                       [](int h, int c) { return h * c; },
                                       [](int h, int c) { return h * c + 1; }}};

constexpr int kOpening = 1;

void expect_signals(const Problem& problem, std::int64_t signals) {
  for (Rank self = 0; self < problem.ranks; ++self) {
    EXPECT_EQ(signals_of(algorithm_named("two_level").plan(problem, self)), signals)
        << describe(problem);
  }
}

TEST(TwoLevelCostTest, RanksOfAHostMeetOncePerStagedPieceAndTwiceForRegisteredMemory) {
  for (const Shape& shape : kShapes) {
    const int h = shape.hosts;
    for (const auto& [operation, messages, signals] : kStaged) {
      Problem problem = problem_on(shape, operation, 0);
      expect_signals(problem, kOpening + signals(h, 1));
      problem.stage_limit = kBlock * 3 / 2;
      const int sent = most_sent_by_a_rank(algorithm_named("two_level"), problem).messages;
      const int pieces = sent / messages(h, 1);
      EXPECT_GT(pieces, 1) << describe(problem);
      EXPECT_EQ(sent, messages(h, pieces)) << describe(problem);
      expect_signals(problem, kOpening + signals(h, pieces));
      problem.registered = schedule::all_registered(problem.ranks);
      expect_signals(problem, 2);
    }
  }
}

TEST(TwoLevelCostTest, RanksOfAHostSignalOncePerPieceOfABroadcastAndOncePerBarrier) {
  for (const Shape& shape : kShapes) {
    Problem problem = problem_on(shape, Operation::kBroadcast, 0);
    expect_signals(problem, 1);
    problem.stage_limit = kBlock;  // in a chain, or to the only other host: one message per piece
    const int pieces = most_sent_by_a_rank(algorithm_named("two_level"), problem).messages;
    EXPECT_GT(pieces, 1) << describe(problem);
    expect_signals(problem, pieces);
    expect_signals(problem_on(shape, Operation::kBarrier, 0), 1);
  }
}

TEST(TwoLevelCostTest, MessagesDoNotDependOnWhetherMemoryIsRegistered) {
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
      if (!problem.registered.empty() || !two_level.applies(problem)) continue;
      for (Rank self = 0; self < problem.ranks; ++self) {
        problem.registered.clear();
        const auto foreign = sent_by(problem, self);
        problem.registered = schedule::all_registered(problem.ranks);
        EXPECT_EQ(sent_by(problem, self), foreign) << describe(problem);
      }
    }
  }
}

}  // namespace
}  // namespace peal::plan::two_level
