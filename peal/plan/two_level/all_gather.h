// all_gather on two levels. Called by the algorithm's table (peal/plan/two_level.h).
//
// Blocks travel around a ring of hosts: each rank receives those of its partners, passes them on
// piece by piece, and gives them to its host's other ranks while the next are under way.
#pragma once

#include "peal/schedule/schedule.h"

namespace peal::plan::two_level {

bool can_all_gather(const schedule::Problem&);
schedule::Part all_gather(const schedule::Problem&, Rank self);

}  // namespace peal::plan::two_level
