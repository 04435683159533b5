#include "peal/backends/native/table_planner.h"

#include "peal/plan/plan.h"

namespace peal::native {
namespace {

std::uint8_t index_of(const plan::Algorithm& algorithm) {
  return static_cast<std::uint8_t>(&algorithm - plan::algorithms().data());
}

}  // namespace

TablePlanner::TablePlanner(Rank self, const Config& config) : self_(self), choices_(config) {}

engine::Planner::Choice TablePlanner::choose(const schedule::Problem& problem, Bytes element) {
  const plan::Algorithm& algorithm = choices_.choose(problem, element);
  return {.algorithm = index_of(algorithm),
          .looks_at_access = algorithm.looks_at_access(problem.operation)};
}

schedule::Part TablePlanner::plan(std::uint8_t algorithm, const schedule::Problem& problem) {
  return plan::algorithms()[algorithm].plan(problem, self_);
}

}  // namespace peal::native
