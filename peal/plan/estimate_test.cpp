// That the model counts what the schedules do.
#include "peal/plan/estimate.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "peal/plan/testing/costs.h"
#include "peal/plan/testing/problems.h"
#include "peal/plan/two_level/broadcast.h"

namespace peal::plan {

void PrintTo(const Load& load, std::ostream* out) {
  *out << load.steps << " steps, " << load.moved.value << " moved, " << load.reduced.value
       << " reduced";
}

namespace {

using schedule::Move;
using schedule::Problem;
using schedule::Schedule;
using schedule::Slice;
using schedule::Space;
using schedule::Step;

/// Walks a schedule of messages: a rank sends one after the other, each takes a step; a receive
/// waits for its message. What a rank receives takes a step a message too.
class Walk {
 public:
  explicit Walk(const Schedule& schedule) {
    members_.resize(schedule.parts.size());
    for (bool moves = true; moves;) {
      moves = false;
      for (Rank self = 0; self < schedule.problem.ranks; ++self) {
        const auto& steps = schedule.parts[static_cast<std::size_t>(self)].steps;
        moves = advance(self, steps) || moves;
      }
    }
  }

  Load busiest() const {
    Load most;
    for (const Member& member : members_) {
      most.steps = std::max({most.steps, member.now, member.sent_at, member.messages});
      most.moved = std::max({most.moved, member.sent, member.received});
      most.reduced = std::max(most.reduced, member.reduced);
    }
    return most;
  }

 private:
  struct Member {
    std::size_t next = 0;
    std::int64_t now = 0;
    std::int64_t sent_at = 0;
    std::int64_t messages = 0;  // received
    Elements sent;
    Elements received;
    Elements reduced;
  };

  bool advance(Rank self, const std::vector<Step>& steps) {
    Member& member = members_[static_cast<std::size_t>(self)];
    const std::size_t before = member.next;
    while (member.next < steps.size()) {
      const auto* const move = std::get_if<Move>(&steps[member.next]);
      if (move != nullptr && !carry_out(self, member, *move)) break;
      ++member.next;
    }
    return member.next != before;
  }

  /// Whether it could.
  bool carry_out(Rank self, Member& member, const Move& move) {
    if (move.to[0].space == Space::kWire) {
      member.sent_at = std::max(member.now, member.sent_at) + 1;
      member.sent += move.count;
      wires_[{self, move.to[0].ranks.first}].push_back(member.sent_at);
      return true;
    }
    const auto* const wire = std::find_if(
        move.from.begin(), move.from.end(), [](const Slice& s) { return s.space == Space::kWire; });
    if (wire == move.from.end()) return true;
    std::deque<std::int64_t>& arrivals = wires_[{wire->ranks.first, self}];
    if (arrivals.empty()) return false;
    member.now = std::max(member.now, arrivals.front());
    arrivals.pop_front();
    ++member.messages;
    member.received += move.count;
    if (move.from.size() > 1) member.reduced += move.count;
    return true;
  }

  std::vector<Member> members_;
  std::map<std::pair<Rank, Rank>, std::deque<std::int64_t>> wires_;
};

/// Tokens are no data.
Load walked(const Algorithm& algorithm, const Problem& problem) {
  Load load = Walk(plan_all(algorithm, problem)).busiest();
  if (problem.operation == Operation::kBarrier) load.moved = {};
  return load;
}

bool is_of_messages(const Algorithm& algorithm) {
  return algorithm.name != "inline" && algorithm.name != "direct";
}

TEST(EstimateTest, TheLoadIsWhatTheSchedulesOfMessagesDo) {
  int checked = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (const Operation operation : kAllCollectives) {
      for (const int n : kRanks) {
        const Problem problem = problem_of(operation, n, 1);
        if (!is_of_messages(algorithm) || !algorithm.applies(problem)) continue;
        EXPECT_EQ(load_of(algorithm, problem), walked(algorithm, problem))
            << algorithm.name << ", " << describe(problem);
        ++checked;
      }
    }
  }
  EXPECT_GE(checked, 150);
}

/// A tree from another root than rank 0 sends what passes the last rank as two messages.
std::int64_t more_steps(const Algorithm& algorithm, const Problem& problem) {
  const bool has_runs =
      problem.operation == Operation::kScatter || problem.operation == Operation::kGather;
  const bool is_in_order = algorithm.name != "binomial_tree" || problem.root == 0;
  return has_runs && !is_in_order ? log2_ceil(problem.ranks) - 1 : 0;
}

/// But for the rounding where a buffer cannot be cut into equal parts.
void expect_about_what_is_walked(const Algorithm& algorithm, const Problem& problem) {
  const Load load = load_of(algorithm, problem).value();
  const Load real = walked(algorithm, problem);
  const std::string where = std::string(algorithm.name) + ", " + describe(problem);
  EXPECT_GE(real.steps, load.steps) << where;
  EXPECT_LE(real.steps, load.steps + more_steps(algorithm, problem)) << where;
  EXPECT_LE(std::abs((real.moved - load.moved).value), problem.ranks) << where;
  EXPECT_LE(std::abs((real.reduced - load.reduced).value), problem.ranks) << where;
}

TEST(EstimateTest, TheLoadIsWhatTheSchedulesDoWhereverRanksAreAndWhoeverIsTheRoot) {
  for (const Algorithm& algorithm : algorithms()) {
    if (!is_of_messages(algorithm)) continue;
    for (const Operation operation : kAllCollectives) {
      for (const int n : kRanks) {
        for (const Problem& problem : problems(operation, n, Stage::kAmple)) {
          const bool has_empty = operation != Operation::kBarrier && problem.count < Elements(n);
          if (has_empty || !problem.counts.empty() || !algorithm.applies(problem)) continue;
          expect_about_what_is_walked(algorithm, problem);
        }
      }
    }
  }
}

TEST(EstimateTest, TheLoadOnTwoLevelsIsWhatTheSchedulesDo) {
  const Algorithm& two_level = algorithm_named("two_level");
  for (const Operation operation : kAllCollectives) {
    for (const int n : kRanks) {
      for (int local = 2; local < n; ++local) {
        const Problem problem = problem_of(operation, n, local);
        if (n % local != 0 || !two_level.applies(problem)) continue;
        EXPECT_EQ(load_of(two_level, problem), walked(two_level, problem)) << describe(problem);
      }
    }
  }
}

/// At once and in pieces, of slices that are all alike, or of which some are smaller or empty.
std::vector<Problem> broadcasts(int hosts, int local) {
  struct Size {
    int count;
    int stage;
  };
  std::vector<Problem> all;
  for (const Size& size : {Size{1, 4},
                           Size{17, 4},
                           Size{17, 64},
                           Size{100, 1000},
                           Size{1000, 64},
                           Size{5000, 1000},
                           Size{5000, 1 << 20},
                           Size{70'001, 20'000}}) {
    for (const Rank root : {0, 1, hosts / 2 * local, hosts * local - 1}) {
      all.push_back(problem_of(Operation::kBroadcast, hosts * local, local));
      all.back().root = root;
      all.back().count = Elements(size.count);
      all.back().stage_limit = Elements(size.stage);
    }
  }
  return all;
}

TEST(EstimateTest, ABroadcastOnTwoLevelsIsAChainOrATreeAsItIsPlanned) {
  const Algorithm& two_level = algorithm_named("two_level");
  std::set<two_level::Path> seen;
  for (const int hosts : {2, 3, 4, 5, 8, 9}) {
    for (const int local : {2, 3, 5}) {
      for (const Problem& problem : broadcasts(hosts, local)) {
        EXPECT_EQ(load_of(two_level, problem), walked(two_level, problem)) << describe(problem);
        seen.insert(two_level::crossing_of(problem).path);
      }
    }
  }
  EXPECT_EQ(seen.size(), 2U);
}

TEST(EstimateTest, ALargeBroadcastByTheRingIsOneOfPieces) {
  Problem problem = problem_of(Operation::kBroadcast, 5, 1);
  problem.count = Elements(1'000'000);
  const Algorithm& ring = algorithm_named("ring");
  EXPECT_EQ(load_of(ring, problem), Walk(plan_all(ring, problem)).busiest());
}

TEST(EstimateTest, SharedMemoryCostsNoMoreThanTheModelSays) {
  for (const std::string_view name : {"inline", "direct"}) {
    const Algorithm& algorithm = algorithm_named(name);
    for (const Operation operation : kAllCollectives) {
      for (const int n : kRanks) {
        Problem problem = problem_of(operation, n, n);
        problem.access = schedule::Access::kRegistered;
        if (!algorithm.applies(problem)) continue;
        const Load load = load_of(algorithm, problem).value();
        for (Rank self = 0; self < n; ++self) {
          EXPECT_LE(moved_by(algorithm.plan(problem, self)), load.moved)
              << name << ", " << describe(problem);
        }
      }
    }
  }
}

TEST(EstimateTest, TimeIsStepsAndBytesAndSums) {
  const Problem problem = problem_of(Operation::kAllReduce, 4, 1);
  const Algorithm& ring = algorithm_named("ring");
  const auto [alpha, beta, gamma] = price_of(ring, problem);
  const auto elements = static_cast<double>(kBlock.value);
  EXPECT_DOUBLE_EQ(estimate(ring, problem, 8_B).value(),
                   6 * alpha + 8 * 6 * elements * beta + 8 * 3 * elements * gamma);
}

TEST(EstimateTest, MessagesAreDearerBetweenHostsAndSharedMemoryIsCheapest) {
  const Algorithm& ring = algorithm_named("ring");
  const Algorithm& direct = algorithm_named("direct");
  const Problem near = problem_of(Operation::kAllReduce, 4, 4);
  const Problem far = problem_of(Operation::kAllReduce, 4, 1);
  EXPECT_LT(estimate(ring, near, 4_B), estimate(ring, far, 4_B));
  EXPECT_LT(estimate(direct, near, 4_B), estimate(ring, near, 4_B));
}

}  // namespace
}  // namespace peal::plan
