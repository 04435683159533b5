// all_reduce on two levels. Called by the algorithm's table (peal/plan/two_level.h).
//
//   1. The owner of a slice reduces it from the inputs of its host's ranks.
//   2. The owners of one slice on all hosts reduce it around a ring of hosts, and bring the result
//      around again: the host's part of the ring algorithm, on 1/n of the data for each of n ranks.
//   3. The owner gives the slice to the other ranks of its host.
//
// Large buffers go through the three in chunks, and while one chunk is under way between hosts, the
// ranks reduce the next.
#pragma once

#include "peal/schedule/schedule.h"

namespace peal::plan::two_level {

bool can_all_reduce(const schedule::Problem&);
schedule::Part all_reduce(const schedule::Problem&, Rank self);

}  // namespace peal::plan::two_level
