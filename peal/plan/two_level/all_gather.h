// all_gather on two levels. Called by the algorithm's table (peal/plan/two_level.h).
//
// Blocks travel around a ring of hosts. Each rank receives the blocks of its partners and passes
// them on piece by piece. It gives them to the other ranks of its host while the next pieces are in
// flight.
#pragma once

#include "peal/schedule/schedule.h"

namespace peal::plan::two_level {

/// Whether the problem has several hosts of several ranks each, and its stage suffices.
bool can_all_gather(const schedule::Problem&);
/// For a problem that it can do, with data.
schedule::Part all_gather(const schedule::Problem&, Rank self);

}  // namespace peal::plan::two_level
