// What the engine asks of whoever plans for it: the engine walks schedules and makes none.
#pragma once

#include <cstdint>
#include <vector>

#include "peal/schedule/schedule.h"

namespace peal::engine {

/// One rank's part with what the engine wants to know of it as a whole.
struct PlannedPart {
  explicit PlannedPart(schedule::Part part, int ranks);

  schedule::Part part;
  std::vector<Elements> sent;      // by peer: elements on the wire in this operation
  std::vector<Elements> received;  // by peer
};

class Planner {
 public:
  virtual ~Planner() = default;
  /// The algorithm for the problem: a number that all ranks agree on. Does not look at `access`.
  virtual std::uint8_t choose(const schedule::Problem& problem, Bytes element) = 0;
  /// Valid until the next call.
  virtual const PlannedPart& plan(std::uint8_t algorithm, const schedule::Problem& problem) = 0;
};

}  // namespace peal::engine
