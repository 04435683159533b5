#include "peal/plan/testing/problems.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/schedule/problem.h"
#include "peal/verify/verify.h"

namespace peal::plan {

using schedule::Problem;
using schedule::Schedule;

namespace {

Elements limit_of(Stage stage, int ranks) {
  return stage == Stage::kAmple ? Elements(1 << 20) : Elements(12 * ranks);
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

/// With a tight stage, only sizes that are large for it: smaller ones give the same schedule.
std::vector<int> counts_for(const Problem& problem, Stage stage) {
  const int n = problem.ranks;
  if (problem.operation == Operation::kBarrier) return {0};
  if (stage == Stage::kAmple) return {0, 1, n - 1, n, n + 1, 1000};
  return can_be_uneven(problem.operation) ? std::vector{37} : std::vector{500};
}

/// Counts that are large, small or empty; only small ones; all elements on one rank.
std::vector<std::vector<Elements>> uneven_counts(const Problem& problem) {
  const int n = problem.ranks;
  const int entries = problem.operation == Operation::kAllToAll ? n * n : n;
  std::vector<Elements> large, small;
  for (int i = 0; i < entries; ++i) {
    small.emplace_back((i * 7 + 3) % 5);
    large.push_back(9 * small.back());
  }
  std::vector<Elements> one(static_cast<std::size_t>(entries));
  one[one.size() / 2] = Elements(37);
  return {large, small, one};
}

/// The problem with every interesting size.
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

/// The problem with each rank on a host of its own, all ranks on one host, and all cases between.
std::vector<Problem> with_hosts(Problem problem) {
  std::vector<Problem> all = {problem};
  for (int local = 2; local <= problem.ranks; ++local) {
    if (problem.ranks % local != 0) continue;
    problem.ranks_per_host = local;
    problem.registered.clear();
    all.push_back(problem);
    problem.registered = schedule::all_registered(problem.ranks);
    all.push_back(problem);
  }
  return all;
}

}  // namespace

std::vector<Problem> problems(Operation operation, int ranks, Stage stage) {
  std::vector<Problem> all;
  for (const bool in_place : places_of(operation)) {
    for (const Rank root : roots_of(operation, ranks)) {
      for (const Problem& problem : with_hosts(
               {.operation = operation, .ranks = ranks, .root = root, .in_place = in_place})) {
        std::vector<Problem> sized = with_sizes(problem, stage);
        std::move(sized.begin(), sized.end(), std::back_inserter(all));
      }
    }
  }
  return all;
}

std::vector<Problem> problems(Operation operation, int ranks) {
  std::vector<Problem> all = problems(operation, ranks, Stage::kAmple);
  std::vector<Problem> tight = problems(operation, ranks, Stage::kTight);
  std::move(tight.begin(), tight.end(), std::back_inserter(all));
  return all;
}

std::string describe(const Problem& p) {
  std::vector<std::int64_t> counts;
  for (const Elements count : p.counts) counts.push_back(count.value);
  std::vector<Rank> registered;
  for (Rank rank = 0; rank < p.ranks; ++rank) {
    if (is_registered(p, rank)) registered.push_back(rank);
  }
  return fmt::format(
      "{} of {} ranks, {} a host, root {}, count {}, counts [{}], {}, registered [{}], stage {}",
      name_of(p.operation),
      p.ranks,
      p.ranks_per_host,
      p.root,
      p.count.value,
      fmt::join(counts, " "),
      p.in_place ? "in place" : "out of place",
      fmt::join(registered, " "),
      p.stage_limit.value);
}

::testing::AssertionResult is_right(std::span<const Schedule> schedules) {
  const std::vector<verify::Violation> violations = verify::verify_sequence(schedules);
  if (violations.empty()) return ::testing::AssertionSuccess();
  ::testing::AssertionResult result = ::testing::AssertionFailure();
  for (const Schedule& schedule : schedules) result << describe(schedule.problem) << "\n";
  for (const verify::Violation& violation : violations) {
    result << "  " << verify::describe(violation) << "\n";
  }
  return result;
}

::testing::AssertionResult is_right(const Schedule& schedule) { return is_right({&schedule, 1}); }

}  // namespace peal::plan
