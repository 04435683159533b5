// reduce_scatter and reduce on two levels. Called by the algorithm's table (peal/plan/two_level.h).
//
// Partial sums of the blocks travel around a ring of hosts. For each of a host's blocks that comes
// by, the rank of the block's index adds what the ranks of its own host have, so that partners pass
// on what their whole hosts have added up:
//
//   1. The ranks of a host put their inputs of one host's blocks into their stages (registered
//      memory is read where it is).
//   2. Each rank reduces the block of its index.
//   3. It receives the partners' sum of that block, adds its own, and passes it on. A block's last
//      stop is its own host, where that is the result.
//
// reduce does so with a part of the buffer for each rank. Complete parts are sent to the partner on
// the root's host, who puts them into its stage, where the root finds them, or into the root's
// output where that is registered.
//
// Two pieces of each block are under way, in turn, so that one is reduced inside the host while
// the other is between hosts.
//
// Where the sums live: in the stage, since an output is too small. The place of one that was sent
// may be used again when the news that it was received has come around the ring, that is in the
// next piece's same step. So every piece must be a message: none may be empty.
#pragma once

#include "peal/schedule/schedule.h"

namespace peal::plan::two_level {

bool can_reduce_by_blocks(const schedule::Problem&);
schedule::Part reduce_by_blocks(const schedule::Problem&, Rank self);

}  // namespace peal::plan::two_level
