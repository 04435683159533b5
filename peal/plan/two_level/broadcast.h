// broadcast on two levels. Called by the algorithm's table (peal/plan/two_level.h).
//
//   1. The root gives each piece to the ranks of its host.
//   2. Each of them sends its slice of the piece to its partners on the next host or hosts.
//   3. Each receiver passes its slice on to its partners, and gives it to the ranks of its host.
//
// Pieces follow each other without a pause. Between hosts they go along a tree, which has few
// steps, or along a chain, in which a host sends everything once: the planner takes the faster of
// both. A buffer of a single slice is sent by the root itself.
#pragma once

#include <cstdint>

#include "peal/schedule/schedule.h"

namespace peal::plan::two_level {

/// Whether the problem has several hosts of several ranks each, and its stage suffices.
bool can_broadcast(const schedule::Problem&);
/// For a problem that it can do, with data.
schedule::Part broadcast(const schedule::Problem&, Rank self);

}  // namespace peal::plan::two_level
