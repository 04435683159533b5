// What the engine asks of whoever plans for it: the engine walks schedules and makes none.
#pragma once

#include <cstdint>

#include "peal/schedule/schedule.h"

namespace peal::engine {

class Planner {
 public:
  virtual ~Planner() = default;

  struct Choice {
    /// A number that all ranks agree on.
    std::uint8_t algorithm = 0;
    /// Whether its schedule depends on Problem::access, so that the ranks have to agree on that.
    bool looks_at_access = false;
  };
  /// The algorithm for the problem, whatever its `access`. `element` is the size of one element.
  virtual Choice choose(const schedule::Problem& problem, Bytes element) = 0;
  /// This rank's part.
  virtual schedule::Part plan(std::uint8_t algorithm, const schedule::Problem& problem) = 0;
};

}  // namespace peal::engine
