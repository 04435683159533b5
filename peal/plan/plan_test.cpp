#include "peal/plan/plan.h"

#include <algorithm>
#include <limits>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/plan/choose.h"
#include "peal/plan/testing/problems.h"

namespace peal::plan {
namespace {

using schedule::Move;
using schedule::Part;
using schedule::Problem;
using schedule::Schedule;
using schedule::Space;
using schedule::Step;

/// 4-byte elements.
constexpr Bytes kElementSize(4);

TEST(PlanTest, AnUnknownNameIsAnErrorThatListsTheNames) {
  try {
    algorithm_named("rign");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    for (const Algorithm& algorithm : algorithms()) {
      EXPECT_THAT(error.what(), testing::HasSubstr(std::string(algorithm.name)));
      EXPECT_EQ(&algorithm_named(algorithm.name), &algorithm);
    }
  }
}

TEST(PlanTest, PlanningTwiceGivesTheSameSchedule) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const Operation operation : kAllCollectives) {
      for (const Problem& problem : problems(operation, 5)) {
        if (!algorithm.applies(problem)) continue;
        const Schedule schedule = plan_all(algorithm, problem);
        ASSERT_EQ(schedule.problem, problem);
        for (Rank rank = 0; rank < problem.ranks; ++rank) {
          ASSERT_EQ(algorithm.plan(problem, rank), schedule.parts[static_cast<std::size_t>(rank)]);
        }
      }
    }
  }
}

TEST(PlanTest, EmptyOperationsHaveNoSteps) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const Operation operation : kAllCollectives) {
      const Problem problem{
          .operation = operation, .ranks = 4, .ranks_per_host = 4, .stage_limit = Elements(64)};
      if (operation == Operation::kBarrier || !algorithm.applies(problem)) continue;
      EXPECT_EQ(algorithm.plan(problem, 1), Part{}) << algorithm.name << " " << name_of(operation);
    }
  }
}

/// In gather and scatter, a rank that is not the root knows only its own count; in all_to_all, only
/// its own row and column.
Problem as_known_to(const Problem& problem, Rank rank) {
  Problem known = problem;
  const auto keep = [&](std::size_t entry) { return problem.counts[entry]; };
  std::fill(known.counts.begin(), known.counts.end(), Elements(0));
  const auto self = static_cast<std::size_t>(rank);
  const auto ranks = static_cast<std::size_t>(problem.ranks);
  if (problem.operation == Operation::kAllToAll) {
    for (std::size_t other = 0; other < ranks; ++other) {
      known.counts[self * ranks + other] = keep(self * ranks + other);
      known.counts[other * ranks + self] = keep(other * ranks + self);
    }
  } else {
    known.counts[self] = keep(self);
  }
  return known;
}

TEST(PlanTest, PlanningNeedsOnlyTheCountsThatTheRankKnows) {
  int checked = 0;
  for (const Operation operation :
       {Operation::kGather, Operation::kScatter, Operation::kAllToAll}) {
    for (const Problem& problem : problems(operation, 4, Stage::kAmple)) {
      if (problem.counts.empty()) continue;
      for (Rank rank = 0; rank < problem.ranks; ++rank) {
        if (rank == problem.root && operation != Operation::kAllToAll) continue;
        const Problem known = as_known_to(problem, rank);
        for (const Algorithm& algorithm : algorithms()) {
          ASSERT_EQ(algorithm.applies(known), algorithm.applies(problem)) << algorithm.name;
          if (!algorithm.applies(problem)) continue;
          EXPECT_EQ(algorithm.plan(known, rank), algorithm.plan(problem, rank))
              << describe(problem);
          ++checked;
        }
        EXPECT_EQ(choose(built_in_choices(), known, kElementSize).name,
                  choose(built_in_choices(), problem, kElementSize).name);
      }
    }
  }
  EXPECT_GT(checked, 0);
}

TEST(PlanTest, APartIsSmallEvenAmongManyRanks) {
  const Problem problem{.operation = Operation::kAllReduce,
                        .ranks = 4096,
                        .count = Elements(1000),
                        .stage_limit = Elements(1 << 20)};
  for (const std::string_view name : {"recursive_doubling", "halving_doubling"}) {
    EXPECT_LE(algorithm_named(name).plan(problem, 1234).steps.size(), 4 * 12U) << name;
  }
}

}  // namespace
}  // namespace peal::plan
