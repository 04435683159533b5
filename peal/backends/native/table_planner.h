// Plans for the engine, by the algorithms of `plan` and its table of which is best.
#pragma once

#include <cstdint>

#include "peal/base/config.h"
#include "peal/engine/planner.h"
#include "peal/plan/choices.h"

namespace peal::native {

/// Threads: any.
class TablePlanner final : public engine::Planner {
 public:
  /// Errors: those of plan::Choices.
  TablePlanner(Rank self, const Config& config);

  Choice choose(const schedule::Problem& problem, Bytes element) override;
  schedule::Part plan(std::uint8_t algorithm, const schedule::Problem& problem) override;

 private:
  Rank self_;
  plan::Choices choices_;
};

}  // namespace peal::native
