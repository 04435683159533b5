// Every planner, proved by `verify` over a grid of problems, alone and in a row with others.
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"
#include "peal/plan/plan.h"
#include "peal/plan/testing/problems.h"

namespace peal::plan {
namespace {

using schedule::Access;
using schedule::Problem;
using schedule::Schedule;

struct Case {
  std::string_view algorithm;
  int ranks;
};

/// Whether so many ranks can be on several hosts, several on each.
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
  // More that make several hosts of several ranks.
  for (const int ranks : kSanitized ? std::vector{6} : std::vector{10, 12, 14, 15}) {
    all.push_back({"two_level", ranks});
  }
  return all;
}

class PlanProofTest : public testing::TestWithParam<Case> {};

TEST_P(PlanProofTest, EveryScheduleIsRight) {
  const Algorithm& algorithm = algorithm_named(GetParam().algorithm);
  int proved = 0;
  for (const Operation operation : kAllCollectives) {
    for (const Problem& problem : problems(operation, GetParam().ranks)) {
      if (!algorithm.applies(problem)) continue;
      // Messages are the same whatever the memory is.
      const bool looks = algorithm.looks_at_access(operation);
      if (problem.access == Access::kRegistered && !looks) continue;
      ASSERT_TRUE(is_right(plan_all(algorithm, problem)));
      ++proved;
    }
  }
  EXPECT_GT(proved, 0);
}

INSTANTIATE_TEST_SUITE_P(Grid, PlanProofTest, testing::ValuesIn(cases()), [](const auto& test) {
  return fmt::format("{}_{}", test.param.algorithm, test.param.ranks);
});

// ---- sizes beyond the grid

/// Proves what all algorithms that apply make of a problem; returns how many did.
int prove_all(const Problem& problem) {
  int proved = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.applies(problem)) continue;
    EXPECT_TRUE(is_right(plan_all(algorithm, problem))) << algorithm.name;
    ++proved;
  }
  return proved;
}

TEST(LargeProofTest, LargeBuffersAreRight) {
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

TEST(LargeProofTest, CountsBeyondThirtyTwoBitsAreRight) {
  for (const Operation operation : kAllCollectives) {
    if (operation == Operation::kBarrier || operation == Operation::kBroadcast) continue;
    for (const Access access : {Access::kForeign, Access::kRegistered}) {
      EXPECT_GE(prove_all({.operation = operation,
                           .ranks = 3,
                           .ranks_per_host = 3,
                           .count = Elements((std::int64_t{1} << 33) + 5),
                           .access = access,
                           .stage_limit = Elements(std::int64_t{1} << 31)}),
                2)
          << name_of(operation);
    }
  }
}

// ---- operations in a row

/// Schedules of all algorithms for a group of this many ranks with so many on a host, where they
/// share stages and counters.
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
  std::mt19937 random(static_cast<unsigned>(ranks));  // the seed: a failure comes again
  std::uniform_int_distribution<std::size_t> any(0, all.size() - 1);
  for (int i = 0; i < kSequences; ++i) {
    std::vector<Schedule> sequence;
    for (int k = 0; k < kLength; ++k) sequence.push_back(all[any(random)]);
    ASSERT_TRUE(is_right(sequence)) << "sequence " << i;
  }
}

TEST(SequenceProofTest, SchedulesInARowAreRight) {
  for (const int ranks : {2, 3, 4, 5}) expect_rows_to_be_right(ranks, ranks);
  expect_rows_to_be_right(4, 2);
  expect_rows_to_be_right(6, 3);
}

}  // namespace
}  // namespace peal::plan
