// That the model counts what the schedules do.
#include "peal/plan/estimate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "peal/plan/testing/costs.h"
#include "peal/plan/testing/problems.h"

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

/// A tree's barrier has its last two steps at once among some numbers of ranks; an all_gather by
/// doubling sends what passes the last rank as two messages.
std::int64_t slack_of(const Algorithm& algorithm, const Problem& problem, std::int64_t steps) {
  if (problem.operation == Operation::kBarrier) return 1;
  const bool by_runs =
      algorithm.name == "recursive_doubling" && problem.operation == Operation::kAllGather;
  return by_runs ? steps : 0;
}

TEST(EstimateTest, TheLoadIsWhatTheSchedulesOfMessagesDo) {
  int checked = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (const Operation operation : kAllCollectives) {
      for (const int n : kRanks) {
        const Problem problem = problem_of(operation, n, 1);
        if (!algorithm.applies(problem)) continue;
        const auto load = load_of(algorithm, problem);
        if (!load) continue;
        Load real = Walk(plan_all(algorithm, problem)).busiest();
        if (operation == Operation::kBarrier) real.moved = {};
        EXPECT_LE(std::abs(load->steps - real.steps), slack_of(algorithm, problem, load->steps))
            << algorithm.name << ", " << describe(problem);
        real.steps = load->steps;
        EXPECT_EQ(*load, real) << algorithm.name << ", " << describe(problem);
        ++checked;
      }
    }
  }
  EXPECT_GE(checked, 150);
}

TEST(EstimateTest, TheLoadOnTwoLevelsIsWhatTheSchedulesDo) {
  const Algorithm& two_level = algorithm_named("two_level");
  for (const Operation operation : kAllCollectives) {
    for (const int n : kRanks) {
      for (int local = 2; local < n; ++local) {
        const Problem problem = problem_of(operation, n, local);
        if (n % local != 0 || !two_level.applies(problem)) continue;
        Load real = Walk(plan_all(two_level, problem)).busiest();
        if (operation == Operation::kBarrier) real.moved = {};
        EXPECT_EQ(load_of(two_level, problem), real) << describe(problem);
      }
    }
  }
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
