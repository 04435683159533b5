// Plans for the engine, by the algorithms of `plan` and its table of which is best.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "peal/engine/planner.h"

namespace peal::native {

/// Threads: any.
class TablePlanner final : public engine::Planner {
 public:
  /// `forced` names the algorithm for every problem that it applies to; empty: plan::choose.
  /// Throws Error(usage) if there is none of that name.
  TablePlanner(Rank self, const std::string& forced);

  Choice choose(const schedule::Problem& problem, Bytes element) override;
  schedule::Part plan(std::uint8_t algorithm, const schedule::Problem& problem) override;

 private:
  Rank self_;
  std::optional<std::uint8_t> forced_;
};

}  // namespace peal::native
