#include "peal/backends/native/table_planner.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/plan/plan.h"
#include "peal/schedule/text.h"
#include "peal/verify/verify.h"

namespace peal::native {
namespace {

std::uint8_t index_of(const plan::Algorithm& algorithm) {
  return static_cast<std::uint8_t>(&algorithm - plan::algorithms().data());
}

/// The time of a proof grows with the square of the number of ranks.
constexpr int kMostVerified = 64;

}  // namespace

void check_schedule(const schedule::Schedule& schedule, std::string_view algorithm) {
  const std::vector<verify::Violation> violations = verify::verify(schedule);
  if (violations.empty()) return;
  throw Error(ErrorKind::kBug,
              fmt::format("the schedule of {} by {} is wrong ({}): {}",
                          name_of(schedule.problem.operation),
                          algorithm,
                          to_text(schedule.problem),
                          describe(violations.front())));
}

TablePlanner::TablePlanner(Rank self, const Config& config)
    : self_(self), verifies_(config.verify), settings_(config) {}

engine::Planner::Choice TablePlanner::choose(const schedule::Problem& problem, Bytes element) {
  const plan::Algorithm& algorithm = settings_.choose(problem, element);
  return {.algorithm = index_of(algorithm), .opens = algorithm.opens(problem.operation)};
}

schedule::Part TablePlanner::plan(std::uint8_t algorithm, const schedule::Problem& problem) {
  const plan::Algorithm& chosen = plan::algorithms()[algorithm];
  if (!verifies_ || problem.ranks > kMostVerified) return chosen.plan(problem, self_);
  schedule::Schedule schedule = plan_all(chosen, problem);
  check_schedule(schedule, chosen.name);
  return std::move(schedule.parts[static_cast<std::size_t>(self_)]);
}

}  // namespace peal::native
