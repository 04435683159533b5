// broadcast on two levels. Called by the algorithm's table (peal/plan/two_level.h).
//
//   1. The root gives each piece to its host's ranks.
//   2. Each of them sends its slice of it to its partner on the next host, or on several.
//   3. Each of a host's ranks passes its slice on to its partners, and gives it to its host.
//
// Pieces follow each other without a pause. From host to host they go along a tree, which has few
// steps, or a chain, in which a host sends everything once: whichever is the sooner done. A buffer
// of a single slice is sent by the root itself.
#pragma once

#include <cstdint>

#include "peal/schedule/schedule.h"

namespace peal::plan::two_level {

/// From the root's host to the others.
enum class Path : std::uint8_t { kChain, kTree };

/// How the pieces go from host to host, and what that costs.
struct Crossing {
  Path path = Path::kChain;
  std::int64_t steps = 0;  // messages one after the other, until all hosts have the last piece
  Elements sent = {};      // by the busiest rank, whose index is the root's
};

/// What both the planner and the estimate go by (peal/plan/estimate.h). Only for what
/// `can_broadcast`.
Crossing crossing_of(const schedule::Problem&);

bool can_broadcast(const schedule::Problem&);
schedule::Part broadcast(const schedule::Problem&, Rank self);

}  // namespace peal::plan::two_level
