// reduce_scatter and reduce on two levels. Called by the algorithm's table (peal/plan/two_level.h).
//
// Partial sums of the blocks travel around a ring of hosts. The rank with index i on each host
// handles the blocks of the ranks with index i: it adds the values of all ranks of its host, and
// passes the sum on to its partner.
//
//   1. The ranks of a host copy their inputs for the blocks of one host into their stages.
//      Registered memory is read directly.
//   2. Each rank reduces the block of its index.
//   3. It receives its partner's sum of that block, adds its own, and passes the sum on. The last
//      stop of a block is its own host, where the sum is the result.
//
// In a reduce, each rank completes a part of the buffer and sends it to its partner on the root's
// host. The partner stores it in its stage, where the root reads it, or in the root's output if
// that is registered.
//
// Two pieces of each block are in flight, in turn, so that one is reduced inside the host while the
// other travels between hosts.
//
// The sums live in the stage, because an output is too small. The place of a sum that was sent is
// free again when later messages have come around the ring, that is at the same step of the next
// piece. So every piece must be a message, and none may be empty.
#pragma once

#include "peal/schedule/schedule.h"

namespace peal::plan::two_level {

/// Whether the problem has several hosts of several ranks each, and its stage suffices.
bool can_reduce_by_blocks(const schedule::Problem&);
/// For a problem that it can do, with data.
schedule::Part reduce_by_blocks(const schedule::Problem&, Rank self);

}  // namespace peal::plan::two_level
