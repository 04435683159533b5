// Proves every planner with `verify` over a grid of problems, alone and in sequences with others.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"
#include "peal/plan/plan.h"
#include "peal/plan/testing/problems.h"
#include "peal/schedule/opening.h"
#include "peal/schedule/problem.h"

namespace peal::plan {
namespace {

using schedule::Problem;
using schedule::Schedule;

struct Case {
  std::string_view algorithm;
  int ranks;
};

/// Whether this number of ranks can be divided into several hosts of several ranks each.
bool has_levels(int ranks) {
  for (int local = 2; local < ranks; ++local) {
    if (ranks % local == 0) return true;
  }
  return false;
}

std::vector<Case> cases() {
  const std::vector numbers =
      kSanitized ? std::vector{2, 3, 4, 5, 8} : std::vector{2, 3, 4, 5, 6, 7, 8, 9, 16};
  std::vector<Case> all;
  for (const Algorithm& algorithm : algorithms()) {
    for (const int ranks : numbers) {
      if (algorithm.name == "two_level" && !has_levels(ranks)) continue;
      all.push_back({algorithm.name, ranks});
    }
  }
  // More numbers of ranks that allow several hosts of several ranks.
  for (const int ranks : kSanitized ? std::vector{6} : std::vector{10, 12, 14, 15}) {
    all.push_back({"two_level", ranks});
  }
  return all;
}

class PlanProofTest : public testing::TestWithParam<Case> {};

TEST_P(PlanProofTest, EveryScheduleIsCorrect) {
  const Algorithm& algorithm = algorithm_named(GetParam().algorithm);
  int proved = 0;
  for (const Operation operation : kAllCollectives) {
    for (const Problem& problem : problems(operation, GetParam().ranks)) {
      if (!algorithm.applies(problem)) continue;
      const bool looks = algorithm.opens(operation);
      if (!problem.registered.empty() && !looks) continue;  // the same schedule
      ASSERT_TRUE(is_right(plan_all(algorithm, problem)));
      ++proved;
    }
  }
  EXPECT_GT(proved, 0);
}

/// In place on some ranks only: on every second, and on the last.
TEST_P(PlanProofTest, EveryScheduleIsCorrectIfRanksDiffer) {
  const Algorithm& algorithm = algorithm_named(GetParam().algorithm);
  for (const Operation operation : kAllCollectives) {
    for (Problem problem : problems(operation, GetParam().ranks)) {
      if (!problem.in_place || !algorithm.applies(problem)) continue;
      problem.in_place = false;
      ASSERT_TRUE(algorithm.applies(problem)) << "ranks would choose different algorithms";
      for (const bool only_last : {false, true}) {
        problem.in_place_of.clear();
        for (Rank rank = 0; rank < problem.ranks; ++rank) {
          problem.in_place_of.push_back(only_last ? rank == problem.ranks - 1 : rank % 2 == 0);
        }
        ASSERT_TRUE(is_right(plan_all(algorithm, problem)));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Grid, PlanProofTest, testing::ValuesIn(cases()), [](const auto& test) {
  return fmt::format("{}_{}", test.param.algorithm, test.param.ranks);
});

// ---- memory that is registered on some ranks only

/// The problem with every set of ranks that have registered memory. With more than 5 ranks, some
/// random sets.
std::vector<Problem> with_registered(Problem problem) {
  constexpr int kMostInFull = 5;
  constexpr int kByChance = 6;
  std::mt19937 random(static_cast<unsigned>(problem.ranks));
  const bool in_full = problem.ranks <= kMostInFull;
  const unsigned sets = in_full ? 1U << problem.ranks : kByChance;
  std::vector<Problem> all;
  for (unsigned set = 0; set < sets; ++set) {
    const auto bits = static_cast<unsigned>(in_full ? set : random());
    problem.registered.clear();
    for (int rank = 0; rank < problem.ranks; ++rank) {
      problem.registered.push_back((bits >> rank & 1U) != 0);
    }
    all.push_back(problem);
  }
  return all;
}

struct Layout {
  int ranks;
  int ranks_per_host;
};

class RegisteredProofTest : public testing::TestWithParam<Layout> {
 protected:
  /// Problems for which the schedule of an algorithm depends on registered memory.
  template <class Do>
  static void for_each_problem(Do&& with) {
    const Layout layout = GetParam();
    for (const Algorithm& algorithm : algorithms()) {
      for (const Operation operation : kAllCollectives) {
        if (!algorithm.opens(operation)) continue;
        for (const Problem& problem : problems(operation, layout.ranks)) {
          const bool is_layout =
              problem.ranks_per_host == layout.ranks_per_host && problem.registered.empty();
          if (is_layout && algorithm.applies(problem)) with(algorithm, problem);
        }
      }
    }
  }
};

TEST_P(RegisteredProofTest, EveryScheduleIsCorrectIfSomeRanksHaveRegisteredMemory) {
  int proved = 0;
  for_each_problem([&](const Algorithm& algorithm, const Problem& problem) {
    for (const Problem& some : with_registered(problem)) {
      ASSERT_TRUE(is_right(plan_all(algorithm, some)));
      ++proved;
    }
  });
  EXPECT_GT(proved, 100);
}

/// With this property, a rank can plan its part as soon as it knows these two facts.
TEST_P(RegisteredProofTest, APartDependsOnlyOnThisRanksMemoryAndOnWhetherAllOfItsHostIsRegistered) {
  for_each_problem([&](const Algorithm& algorithm, const Problem& problem) {
    for (Rank self = 0; self < problem.ranks; ++self) {
      std::map<std::pair<bool, bool>, schedule::Part> parts;
      for (const Problem& some : with_registered(problem)) {
        const std::pair known(learns_in_opening(some, self), works_on_registered(some, self));
        const schedule::Part part = algorithm.plan(some, self);
        ASSERT_EQ(parts.emplace(known, part).first->second, part) << describe(some) << self;
      }
    }
  });
}

/// With this property, a rank can do the opening before it knows which part follows.
TEST_P(RegisteredProofTest, EveryPartBeginsWithTheOpening) {
  for_each_problem([&](const Algorithm& algorithm, const Problem& problem) {
    for (const Problem& some : with_registered(problem)) {
      for (Rank self = 0; self < problem.ranks; ++self) {
        std::vector<schedule::Step> steps = algorithm.plan(some, self).steps;
        if (steps.empty()) continue;  // nothing to move
        const std::vector<schedule::Step> opening = schedule::opening(some, self);
        steps.resize(std::min(steps.size(), opening.size()));
        ASSERT_EQ(steps, opening) << algorithm.name << ", " << describe(some) << self;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts,
                         RegisteredProofTest,
                         testing::ValuesIn(kSanitized ? std::vector<Layout>{{3, 3}, {4, 2}}
                                                      : std::vector<Layout>{{2, 2},
                                                                            {3, 3},
                                                                            {4, 4},
                                                                            {5, 5},
                                                                            {4, 2},
                                                                            {6, 6},
                                                                            {6, 2},
                                                                            {6, 3},
                                                                            {8, 4},
                                                                            {9, 3},
                                                                            {16, 4}}),
                         [](const auto& test) {
                           return fmt::format(
                               "{}Ranks{}AHost", test.param.ranks, test.param.ranks_per_host);
                         });

// ---- sizes beyond the grid

/// Proves the schedules of all algorithms that apply to a problem. Returns their number.
int prove_all(const Problem& problem) {
  int proved = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.applies(problem)) continue;
    EXPECT_TRUE(is_right(plan_all(algorithm, problem))) << algorithm.name;
    ++proved;
  }
  return proved;
}

TEST(LargeProofTest, SchedulesOfLargeBuffersAreCorrect) {
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kReduce, Operation::kBroadcast}) {
    for (const int ranks : {2, 3, 5, 8}) {
      for (const bool in_place : {false, true}) {
        if (operation == Operation::kBroadcast && !in_place) continue;
        EXPECT_GE(prove_all({.operation = operation,
                             .ranks = ranks,
                             .ranks_per_host = ranks,
                             .root = 1,
                             .count = Elements((1 << 20) + 100),
                             .in_place = in_place,
                             .stage_limit = Elements(1 << 19)}),
                  3);
      }
    }
  }
}

TEST(LargeProofTest, SchedulesOfCountsBeyond32BitsAreCorrect) {
  for (const Operation operation : kAllCollectives) {
    if (operation == Operation::kBarrier || operation == Operation::kBroadcast) continue;
    for (const bool registered : {false, true}) {
      EXPECT_GE(prove_all({.operation = operation,
                           .ranks = 3,
                           .ranks_per_host = 3,
                           .count = Elements((std::int64_t{1} << 33) + 5),
                           .registered = std::vector<bool>(3, registered),
                           .stage_limit = Elements(std::int64_t{1} << 31)}),
                2)
          << name_of(operation);
    }
  }
}

// ---- sequences of operations

/// Schedules of all algorithms for a group of `ranks` ranks, `ranks_per_host` on each host, where
/// the ranks share stages and counters.
std::vector<Schedule> schedules_of_a_group(int ranks, int ranks_per_host) {
  std::vector<Schedule> all;
  for (const Operation operation : kAllCollectives) {
    for (const Stage stage : {Stage::kAmple, Stage::kTight}) {
      for (const Problem& problem : problems(operation, ranks, stage)) {
        if (problem.ranks_per_host != ranks_per_host) continue;
        for (const Algorithm& algorithm : algorithms()) {
          if (algorithm.applies(problem)) all.push_back(plan_all(algorithm, problem));
        }
      }
    }
  }
  return all;
}

void expect_rows_to_be_right(int ranks, int ranks_per_host) {
  constexpr int kSequences = kSanitized ? 100 : 400;
  constexpr int kLength = 6;
  const std::vector<Schedule> all = schedules_of_a_group(ranks, ranks_per_host);
  std::mt19937 random(static_cast<unsigned>(ranks));  // a fixed seed, so that failures repeat
  std::uniform_int_distribution<std::size_t> any(0, all.size() - 1);
  for (int i = 0; i < kSequences; ++i) {
    std::vector<Schedule> sequence;
    for (int k = 0; k < kLength; ++k) sequence.push_back(all[any(random)]);
    ASSERT_TRUE(is_right(sequence)) << "sequence " << i;
  }
}

TEST(SequenceProofTest, SequencesOfSchedulesAreCorrect) {
  for (const int ranks : {2, 3, 4, 5}) expect_rows_to_be_right(ranks, ranks);
  expect_rows_to_be_right(4, 2);
  expect_rows_to_be_right(6, 3);
}

}  // namespace
}  // namespace peal::plan
