#include "peal/backends/native/table_planner.h"

#include <string>

#include "peal/base/error.h"
#include "peal/plan/plan.h"

namespace peal::native {
namespace {

std::uint8_t index_of(const plan::Algorithm& algorithm) {
  return static_cast<std::uint8_t>(&algorithm - plan::algorithms().data());
}

/// What `read` returns; its errors name the variable.
template <class Read>
auto from_variable(const std::string& name, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.kind(), name + ": " + std::string(error.message()));
  }
}

}  // namespace

TablePlanner::TablePlanner(Rank self, const Config& config)
    : self_(self),
      table_(
          from_variable("PEAL_TUNE", [&] { return plan::tuned(plan::parse_table(config.tune)); })) {
  if (config.algorithm.empty()) return;
  forced_ =
      from_variable("PEAL_ALGORITHM", [&] { return &plan::algorithm_named(config.algorithm); });
}

engine::Planner::Choice TablePlanner::choose(const schedule::Problem& problem, Bytes element) {
  const bool is_forced = forced_ != nullptr && forced_->applies(problem);
  const plan::Algorithm& algorithm = is_forced ? *forced_ : plan::choose(table_, problem, element);
  return {.algorithm = index_of(algorithm),
          .looks_at_access = algorithm.looks_at_access(problem.operation)};
}

schedule::Part TablePlanner::plan(std::uint8_t algorithm, const schedule::Problem& problem) {
  return plan::algorithms()[algorithm].plan(problem, self_);
}

}  // namespace peal::native
