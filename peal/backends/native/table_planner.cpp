#include "peal/backends/native/table_planner.h"

#include "peal/plan/plan.h"

namespace peal::native {
namespace {

std::uint8_t index_of(const plan::Algorithm& algorithm) {
  return static_cast<std::uint8_t>(&algorithm - plan::algorithms().data());
}

}  // namespace

TablePlanner::TablePlanner(Rank self, const std::string& forced) : self_(self) {
  if (!forced.empty()) forced_ = index_of(plan::algorithm_named(forced));
}

engine::Planner::Choice TablePlanner::choose(const schedule::Problem& problem, Bytes element) {
  const bool is_forced = forced_ && plan::algorithms()[*forced_].applies(problem);
  const plan::Algorithm& algorithm =
      is_forced ? plan::algorithms()[*forced_] : plan::choose(problem, element);
  return {.algorithm = index_of(algorithm),
          .looks_at_access = algorithm.memory == plan::Memory::kLooksAtAccess};
}

schedule::Part TablePlanner::plan(std::uint8_t algorithm, const schedule::Problem& problem) {
  return plan::algorithms()[algorithm].plan(problem, self_);
}

}  // namespace peal::native
