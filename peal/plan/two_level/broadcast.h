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

#include "peal/schedule/schedule.h"

namespace peal::plan::two_level {

bool can_broadcast(const schedule::Problem&);
schedule::Part broadcast(const schedule::Problem&, Rank self);

}  // namespace peal::plan::two_level
