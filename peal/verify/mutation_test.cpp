// Changes each field of each step of every planner's schedules, and deletes each step. The verifier
// must reject the change. If a change of a field goes unnoticed, some code does not read the field.
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"
#include "peal/plan/plan.h"
#include "peal/schedule/problem.h"
#include "peal/schedule/text.h"
#include "peal/verify/testing/mutants.h"
#include "peal/verify/verify.h"

namespace peal::verify {
namespace {

using schedule::Part;
using schedule::Problem;
using schedule::Schedule;

/// Small problems of all kinds. Their stages hold them in two pieces or more.
std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const Operation operation : kAllCollectives) {
    for (const int ranks : {2, 3}) {
      const Elements count(operation == Operation::kBarrier ? 0 : 10);
      Problem problem{.operation = operation,
                      .ranks = ranks,
                      .root = ranks - 1,
                      .count = count,
                      .stage_limit = Elements(16)};
      all.push_back(problem);
      problem.ranks_per_host = ranks;
      all.push_back(problem);
      problem.registered = schedule::all_registered(ranks);
      problem.in_place = operation != Operation::kAllToAll;
      all.push_back(problem);
      problem.ranks_per_host = 1;
      problem.registered.clear();
      if (problem.in_place) all.push_back(problem);
    }
    all.push_back({.operation = operation,
                   .ranks = 4,
                   .ranks_per_host = 2,
                   .root = 3,
                   .count = Elements(operation == Operation::kBarrier ? 0 : 10),
                   .stage_limit = Elements(32)});
  }
  return all;
}

/// The mutants of one field.
struct Count {
  int tried = 0;
  int survived = 0;
  std::string example;  // the whole text of the last survivor

  double rejected() const { return 1.0 - static_cast<double>(survived) / tried; }
};

struct Tally {
  int made = 0;
  int tried = 0;
  std::map<std::string, Count, std::less<>> fields;
};

std::string summary(std::string_view field, const Count& count) {
  return fmt::format("{:>14}: {:6} mutants, {:4} survived, {:6.2f}% rejected",
                     field,
                     count.tried,
                     count.survived,
                     count.rejected() * 100);
}

void print(const Tally& tally) {
  for (const auto& [field, count] : tally.fields) fmt::print("{}\n", summary(field, count));
}

/// Expects that at least this share of the field's mutants is rejected.
void expect_refused(const Tally& tally, std::string_view field, double least) {
  const auto found = tally.fields.find(field);
  ASSERT_NE(found, tally.fields.end()) << field;
  const Count& count = found->second;
  EXPECT_GE(count.rejected(), least) << summary(field, count) << "\nfor example\n" << count.example;
}

/// Tries one in `share` of the mutants that `mutate_part` makes of the schedule's parts.
void try_mutants(Schedule& schedule,
                 void (*mutate_part)(Part&, const Attempt&),
                 int share,
                 Tally& tally) {
  for (Part& part : schedule.parts) {
    mutate_part(part, [&](std::string_view field) {
      if (tally.made++ % share != 0) return;
      ++tally.tried;
      Count& count = tally.fields[std::string(field)];
      ++count.tried;
      if (!verify(schedule).empty()) return;
      ++count.survived;
      count.example = to_text(schedule);
    });
  }
}

Tally tally_of(void (*mutate_part)(Part&, const Attempt&), int share) {
  Tally tally;
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    for (const Problem& problem : problems()) {
      if (!algorithm.applies(problem)) continue;
      Schedule schedule = plan::plan_all(algorithm, problem);
      const std::vector<Violation> violations = verify(schedule);
      EXPECT_TRUE(violations.empty()) << to_text(schedule) << describe(violations.front());
      if (violations.empty()) try_mutants(schedule, mutate_part, share, tally);
    }
  }
  print(tally);
  return tally;
}

/// Fields of which more mutants survive, and why they do no harm. The engine also shows that these
/// mutants compute the right results (tests/collectives/differential_test.cpp).
const std::map<std::string_view, double> kHarmless = {
    {"stage+1", 0.6},   // more scratch is reserved than is used
    {"stage-1", 0.97},  // the rank uses less than it reserves, because another rank uses it all
    {"wait.value+1", 0.85},  // waits longer than necessary, for a signal that comes soon after
    {"wait.value-1", 0.9},   // another signal or a message gives the rank the same order
    {"signal", 0.75},        // deleted: no rank waits for it, or the next one gives the same order
    {"wait", 0.9},           // deleted: another signal or a message gives the same order
};

double least_refused(std::string_view field) {
  const auto found = kHarmless.find(field);
  return found == kHarmless.end() ? 0.98 : found->second;
}

// The other mutants that survive are of these kinds:
// - space: in place, the other name of a place; or another copy of the same data (the input that a
//   stage or an output was copied from, in this rank's or in registered memory).
// - ranks.first, ranks.count of a Wait: the signal of another rank, or a message, gives the same
//   order, because it comes after the intended signal.
// - ranks.count of a Move: it also writes to an output that already holds the same values.
// - offset: the token of a barrier, which has no content, lies elsewhere in the stage.
TEST(MutationTest, ChangingAnyFieldIsRejected) {
  const int share = kSanitized ? 7 : 1;
  const Tally tally = tally_of(mutate_fields, share);
  EXPECT_GT(tally.tried, 40'000 / share);
  for (const auto& [field, count] : tally.fields) {
    expect_refused(tally, field, least_refused(field));
  }
  expect_refused(tally, "holds", 1.0);
}

TEST(MutationTest, DeletingAStepIsRejected) {
  const Tally tally = tally_of(delete_steps, 1);
  EXPECT_GT(tally.tried, 2'000);
  for (const auto& [kind, count] : tally.fields) expect_refused(tally, kind, least_refused(kind));
  expect_refused(tally, "move", 1.0);
}

}  // namespace
}  // namespace peal::verify
