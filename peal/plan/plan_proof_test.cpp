// Every planner, proved by `verify` over a grid of problems.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "peal/plan/plan.h"
#include "peal/verify/verify.h"

namespace peal::plan {
namespace {

using schedule::Access;
using schedule::Problem;
using schedule::Schedule;

/// Room for everything, and room for pieces only.
enum class Stage : std::uint8_t { kAmple, kTight };

Elements limit_of(Stage stage, int ranks) {
  return stage == Stage::kAmple ? Elements(1 << 20) : Elements(12 * ranks);
}

std::string describe(const Problem& p) {
  std::vector<std::int64_t> counts;
  for (const Elements count : p.counts) counts.push_back(count.value);
  return fmt::format("{} of {} ranks, {} a host, root {}, count {}, counts [{}], {}, {}, stage {}",
                     name_of(p.operation),
                     p.ranks,
                     p.ranks_per_host,
                     p.root,
                     p.count.value,
                     fmt::join(counts, " "),
                     p.in_place ? "in place" : "out of place",
                     p.access == Access::kRegistered ? "registered" : "foreign",
                     p.stage_limit.value);
}

std::string describe(const std::vector<verify::Violation>& violations) {
  std::string text;
  for (const verify::Violation& v : violations) {
    text +=
        fmt::format("\n  operation {}, rank {}, step {}: {}", v.operation, v.rank, v.step, v.what);
  }
  return text;
}

bool has_root(Operation operation) {
  return operation == Operation::kBroadcast || operation == Operation::kReduce ||
         operation == Operation::kScatter || operation == Operation::kGather;
}

bool can_be_uneven(Operation operation) {
  return operation == Operation::kScatter || operation == Operation::kGather ||
         operation == Operation::kAllGather || operation == Operation::kReduceScatter ||
         operation == Operation::kAllToAll;
}

std::vector<bool> places_of(Operation operation) {
  if (operation == Operation::kBroadcast) return {true};
  if (operation == Operation::kAllToAll || operation == Operation::kBarrier) return {false};
  return {false, true};
}

std::vector<Rank> roots_of(Operation operation, int ranks) {
  if (!has_root(operation)) return {0};
  if (ranks == 2) return {0, 1};
  return {0, ranks / 2, ranks - 1};
}

/// What is small against the tight stage need not be tried there: it is the same schedule.
std::vector<int> counts_for(const Problem& problem, Stage stage) {
  const int n = problem.ranks;
  if (problem.operation == Operation::kBarrier) return {0};
  if (stage == Stage::kAmple) return {0, 1, n - 1, n, n + 1, 1000};
  return can_be_uneven(problem.operation) ? std::vector{50} : std::vector{1000};
}

/// Some large, some small, some empty; all small; one rank has it all.
std::vector<std::vector<Elements>> uneven_counts(const Problem& problem) {
  const int n = problem.ranks;
  const int entries = problem.operation == Operation::kAllToAll ? n * n : n;
  std::vector<Elements> large, small;
  for (int i = 0; i < entries; ++i) {
    small.emplace_back((i * 7 + 3) % 5);
    large.push_back(20 * small.back());
  }
  std::vector<Elements> one(static_cast<std::size_t>(entries));
  one[one.size() / 2] = Elements(50);
  return {large, small, one};
}

/// The problem with every size that matters for it.
std::vector<Problem> with_sizes(Problem problem, Stage stage) {
  problem.stage_limit = limit_of(stage, problem.ranks);
  std::vector<Problem> all;
  for (const int count : counts_for(problem, stage)) {
    all.push_back(problem);
    all.back().count = Elements(count);
  }
  if (!can_be_uneven(problem.operation)) return all;
  for (const std::vector<Elements>& counts : uneven_counts(problem)) {
    all.push_back(problem);
    all.back().counts = counts;
  }
  return all;
}

/// Ranks that have hosts of their own, and ranks of one host.
std::vector<Problem> with_hosts(Problem problem) {
  std::vector<Problem> all = {problem, problem, problem};
  all[1].ranks_per_host = all[2].ranks_per_host = problem.ranks;
  all[2].access = Access::kRegistered;
  return all;
}

/// All problems of an operation for a number of ranks.
std::vector<Problem> problems(Operation operation, int ranks) {
  std::vector<Problem> all;
  for (const bool in_place : places_of(operation)) {
    for (const Rank root : roots_of(operation, ranks)) {
      for (const Problem& problem : with_hosts(
               {.operation = operation, .ranks = ranks, .root = root, .in_place = in_place})) {
        for (const Stage stage : {Stage::kAmple, Stage::kTight}) {
          std::vector<Problem> sized = with_sizes(problem, stage);
          std::move(sized.begin(), sized.end(), std::back_inserter(all));
        }
      }
    }
  }
  return all;
}

struct Case {
  std::string_view algorithm;
  int ranks;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Algorithm& algorithm : algorithms()) {
    for (const int ranks : {2, 3, 4, 5, 6, 7, 8, 9, 16}) all.push_back({algorithm.name, ranks});
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
      const auto violations = verify::verify(plan_all(algorithm, problem));
      EXPECT_TRUE(violations.empty()) << describe(problem) << describe(violations);
      if (!violations.empty()) return;
      ++proved;
    }
  }
  EXPECT_GT(proved, 0);
  RecordProperty("proved", proved);
}

INSTANTIATE_TEST_SUITE_P(Grid, PlanProofTest, testing::ValuesIn(cases()), [](const auto& test) {
  return fmt::format("{}_{}", test.param.algorithm, test.param.ranks);
});

}  // namespace
}  // namespace peal::plan
