// Plans schedules for the engine, by the algorithms of `plan` and its table of the best ones.
#pragma once

#include <cstdint>
#include <string_view>

#include "peal/config/config.h"
#include "peal/engine/planner.h"
#include "peal/plan/algorithm_settings.h"

namespace peal::native {

/// With Config::verify, `verify` proves each part together with the parts of all other ranks before
/// the part is used, in groups of up to 64 ranks. The engine asks for parts in which the memory of
/// all ranks, of none, or of this rank only is registered. A rank does not know which others are,
/// so a job does not prove other mixes; the tests do (plan/plan_proof_test.cpp).
/// Threads: any.
class TablePlanner final : public engine::Planner {
 public:
  /// Errors: those of plan::AlgorithmSettings.
  TablePlanner(Rank self, const Config& config);

  Choice choose(const schedule::Problem& problem, Bytes element) override;
  /// Errors: bug (names the error in the schedule).
  schedule::Part plan(std::uint8_t algorithm, const schedule::Problem& problem) override;

 private:
  Rank self_;
  bool verifies_;
  plan::AlgorithmSettings settings_;
};

/// The check of Config::verify for each schedule. Throws Error(bug).
void check_schedule(const schedule::Schedule& schedule, std::string_view algorithm);

}  // namespace peal::native
