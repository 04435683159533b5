// all_reduce on two levels. Called by the algorithm's table (peal/plan/two_level.h).
//
//   1. The owner of a slice reduces it from the inputs of its host's ranks.
//   2. The owners of one slice on all hosts reduce it around a ring of hosts and send the result
//      around again: the ring algorithm, with 1/n of the data for each of the n ranks of a host.
//   3. The owner gives the slice to the other ranks of its host.
//
// Large buffers go through the three stages in chunks. While one chunk travels between hosts, the
// ranks reduce the next.
#pragma once

#include "peal/schedule/schedule.h"

namespace peal::plan::two_level {

/// Whether the problem has several hosts of several ranks each, and its stage suffices.
bool can_all_reduce(const schedule::Problem&);
/// For a problem that it can do, with data.
schedule::Part all_reduce(const schedule::Problem&, Rank self);

}  // namespace peal::plan::two_level
