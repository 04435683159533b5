// Changes each field of each step of every planner's schedules, and deletes each step: the verifier
// must object. A field that may change unnoticed is one that somebody fails to read.
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"
#include "peal/plan/plan.h"
#include "peal/schedule/text.h"
#include "peal/verify/verify.h"

namespace peal::verify {
namespace {

using schedule::Access;
using schedule::Finish;
using schedule::Holds;
using schedule::Move;
using schedule::Part;
using schedule::Problem;
using schedule::Ranks;
using schedule::Schedule;
using schedule::Signal;
using schedule::Slice;
using schedule::Space;
using schedule::Step;
using schedule::Wait;

/// Called with each change made, before it is undone.
using Attempt = std::function<void(std::string_view field)>;

template <class Number>
void mutate(Number& number, std::string_view field, const Attempt& attempt) {
  const Number right = number;
  for (const int change : {-1, 1}) {
    number = right + Number(change);
    attempt(field);
  }
  number = right;
}

void mutate(Ranks& ranks, const Attempt& attempt) {
  mutate(ranks.first, "ranks.first", attempt);
  mutate(ranks.count, "ranks.count", attempt);
  mutate(ranks.stride, "ranks.stride", attempt);
}

void mutate(Slice& slice, const Attempt& attempt) {
  const Space right = slice.space;
  for (const Space space : {Space::kInput, Space::kOutput, Space::kStage, Space::kWire}) {
    slice.space = space;
    if (space != right) attempt("space");
  }
  slice.space = right;
  mutate(slice.ranks, attempt);
  mutate(slice.offset, "offset", attempt);
  const Holds held = slice.holds;
  slice.holds = held == Holds::kPartial ? Holds::kContribution : Holds::kPartial;
  attempt("holds");
  slice.holds = held;
}

void mutate(Move& move, const Attempt& attempt) {
  for (Slice& slice : move.from) mutate(slice, attempt);
  for (Slice& slice : move.to) mutate(slice, attempt);
  mutate(move.count, "count", attempt);
  const Finish right = move.finish;
  move.finish = right == Finish::kYes ? Finish::kNo : Finish::kYes;
  attempt("finish");
  move.finish = right;
}

void mutate(Signal& signal, const Attempt& attempt) {
  mutate(signal.value, "signal.value", attempt);
}

void mutate(Wait& wait, const Attempt& attempt) {
  mutate(wait.ranks, attempt);
  mutate(wait.value, "wait.value", attempt);
}

void mutate_fields(Part& part, const Attempt& attempt) {
  for (Step& step : part.steps) {
    std::visit([&](auto& kind) { mutate(kind, attempt); }, step);
  }
  mutate(part.stage, "stage", attempt);
  mutate(part.span, "span", attempt);
}

void delete_steps(Part& part, const Attempt& attempt) {
  const std::vector<Step> right = part.steps;
  for (std::size_t i = 0; i < right.size(); ++i) {
    part.steps.erase(part.steps.begin() + static_cast<std::ptrdiff_t>(i));
    const std::string text = to_text(right[i]);
    attempt(text.substr(0, text.find(' ')));
    part.steps = right;
  }
}

/// Problems of all kinds, small, with stages that hold them in two pieces or more.
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
      problem.access = Access::kRegistered;
      problem.in_place = operation != Operation::kAllToAll;
      all.push_back(problem);
      problem.ranks_per_host = 1;
      problem.access = Access::kForeign;
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

struct Tally {
  int made = 0;
  int tried = 0;
  int survived = 0;
  std::map<std::string, int, std::less<>> survivors;  // by field
  std::string example;                                // the last survivor, whole

  double refused() const { return 1.0 - static_cast<double>(survived) / tried; }
};

std::string summary(const Tally& tally) {
  std::string text = fmt::format("{} mutants, {} survived: {:.2f}% refused",
                                 tally.tried,
                                 tally.survived,
                                 tally.refused() * 100);
  for (const auto& [field, count] : tally.survivors)
    text += fmt::format("\n  {}: {}", field, count);
  return text + "\nfor example\n" + tally.example;
}

/// Tries one in `share` of those that `mutate` makes of the parts of the schedule.
void try_mutants(Schedule& schedule,
                 void (*mutate_part)(Part&, const Attempt&),
                 int share,
                 Tally& tally) {
  for (Part& part : schedule.parts) {
    mutate_part(part, [&](std::string_view field) {
      if (tally.made++ % share != 0) return;
      ++tally.tried;
      if (!verify(schedule).empty()) return;
      ++tally.survived;
      ++tally.survivors[std::string(field)];
      tally.example = to_text(schedule);
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
  fmt::print("{}\n", summary(tally));
  return tally;
}

// Those that survive do no harm. They were looked through, and are of these kinds:
// - space: in place, the other name of a place; or another copy of the same data (the input that a
//   stage or an output was copied from, the own one or a registered one).
// - wait.value: an over-long wait, for a signal that comes soon after.
// - ranks.first, ranks.count of a Wait: another rank's signal or a message tells as much, since it
//   comes after the one that was meant.
// - ranks.count of a Move: also into an output that holds the same already.
// - offset: the token of a barrier, whose content has no meaning, lies elsewhere in the stage.
TEST(MutationTest, AChangeOfAnyFieldIsRefused) {
  const int share = kSanitized ? 7 : 1;
  Tally tally = tally_of(mutate_fields, share);
  EXPECT_GT(tally.tried, 40'000 / share);
  EXPECT_GE(tally.refused(), 0.99) << summary(tally);
  EXPECT_EQ(tally.survivors["holds"], 0) << summary(tally);
}

// Those that survive are signals that nobody waits for, since planners signal every piece, or of
// which the next one does as well; and look-backs where a message tells as much.
TEST(MutationTest, AStepThatIsMissingIsRefused) {
  Tally tally = tally_of(delete_steps, 1);
  EXPECT_GT(tally.tried, 2'000);
  EXPECT_EQ(tally.survivors["move"], 0) << summary(tally);
  EXPECT_GE(tally.refused(), 0.95) << summary(tally);
}

}  // namespace
}  // namespace peal::verify
