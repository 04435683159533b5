// The engine's interface to the planner: the engine executes schedules and does not make them.
#pragma once

#include <cstdint>

#include "peal/schedule/schedule.h"

namespace peal::engine {

/// Threads: one at a time.
class Planner {
 public:
  virtual ~Planner() = default;

  struct Choice {
    /// A number that all ranks agree on.
    std::uint8_t algorithm = 0;
    /// Whether its schedule depends on Problem::registered and begins with the opening
    /// (schedule/opening.h).
    bool opens = false;
  };
  /// The algorithm for the problem. Ignores `registered`. `element` is the size of one element.
  virtual Choice choose(const schedule::Problem& problem, Bytes element) = 0;
  /// This rank's part.
  virtual schedule::Part plan(std::uint8_t algorithm, const schedule::Problem& problem) = 0;
};

}  // namespace peal::engine
