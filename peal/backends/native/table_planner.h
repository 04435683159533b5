// Plans for the engine, by the algorithms of `plan` and its table of which is best.
#pragma once

#include <cstdint>

#include "peal/base/config.h"
#include "peal/engine/planner.h"
#include "peal/plan/choose.h"

namespace peal::native {

/// Threads: any.
class TablePlanner final : public engine::Planner {
 public:
  /// By `algorithm` where it is set and applies, else by `tune`, else by the built-in choices.
  /// Throws Error(usage) that names PEAL_ALGORITHM or PEAL_TUNE where it is wrong.
  TablePlanner(Rank self, const Config& config);

  Choice choose(const schedule::Problem& problem, Bytes element) override;
  schedule::Part plan(std::uint8_t algorithm, const schedule::Problem& problem) override;

 private:
  Rank self_;
  plan::Table table_;
  const plan::Algorithm* forced_ = nullptr;
};

}  // namespace peal::native
