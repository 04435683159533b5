// Operations in a row share stages and counters. All rows of three, and many of five, out of the
// schedules that use them.
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"
#include "peal/plan/plan.h"
#include "peal/schedule/text.h"
#include "peal/verify/verify.h"

namespace peal::verify {
namespace {

using schedule::Access;
using schedule::Problem;
using schedule::Schedule;

bool uses_window(const Schedule& schedule) {
  return schedule.parts.front().span > 0 || schedule.parts.front().stage > Elements(0);
}

/// Of every algorithm and operation on one host what uses the window.
void append_all(std::vector<Schedule>& all, Problem problem) {
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    for (const Operation operation : kAllCollectives) {
      problem.operation = operation;
      const bool is_first_root = operation == Operation::kReduce || operation == Operation::kGather;
      problem.root = is_first_root ? 0 : problem.ranks - 1;
      problem.count = Elements(operation == Operation::kBarrier ? 0 : 6);
      problem.in_place = operation == Operation::kAllReduce;
      if (!algorithm.applies(problem)) continue;
      Schedule schedule = plan::plan_all(algorithm, problem);
      if (uses_window(schedule)) all.push_back(std::move(schedule));
    }
  }
}

/// With foreign memory, where the stage has room for everything.
std::vector<Schedule> short_schedules(int ranks) {
  std::vector<Schedule> all;
  append_all(all, {.ranks = ranks, .ranks_per_host = ranks, .stage_limit = Elements(1000)});
  return all;
}

/// Also with registered memory, and with a stage that what it holds goes through in pieces.
std::vector<Schedule> all_schedules(int ranks) {
  std::vector<Schedule> all = short_schedules(ranks);
  append_all(all, {.ranks = ranks, .ranks_per_host = ranks, .stage_limit = Elements(4 * ranks)});
  append_all(all,
             {.ranks = ranks,
              .ranks_per_host = ranks,
              .access = Access::kRegistered,
              .stage_limit = Elements(1000)});
  return all;
}

void expect_right(std::span<const Schedule> row) {
  const std::vector<Violation> violations = verify_sequence(row);
  if (violations.empty()) return;
  std::string text = describe(violations.front());
  for (const Schedule& schedule : row) text += "\n" + to_text(schedule);
  FAIL() << text;
}

class SequenceTest : public testing::TestWithParam<int> {};

TEST_P(SequenceTest, EveryRowOfThreeIsRight) {
  const std::vector<Schedule> all = short_schedules(GetParam());
  EXPECT_GE(all.size(), 12u);
  for (const Schedule& first : all) {
    for (const Schedule& second : all) {
      for (const Schedule& third : all) {
        ASSERT_NO_FATAL_FAILURE(expect_right(std::vector{first, second, third}));
      }
    }
  }
}

TEST_P(SequenceTest, RowsOfFiveAreRight) {
  constexpr int kRows = 300;
  const std::vector<Schedule> all = all_schedules(GetParam());
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  for (int i = 0; i < kRows; ++i) {
    std::vector<Schedule> row;
    while (row.size() < 5) row.push_back(all[random() % all.size()]);
    ASSERT_NO_FATAL_FAILURE(expect_right(row)) << "row " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks,
                         SequenceTest,
                         testing::ValuesIn(kSanitized ? std::vector{2, 3}
                                                      : std::vector{2, 3, 4, 5}));

}  // namespace
}  // namespace peal::verify
