// How the ranks of a host find out whether they can work directly on each other's memory.
//
// At first, a rank knows only whether its own memory is registered. But a schedule that works
// directly on peers' memory is possible only if the memory of all these ranks is registered. So
// such operations begin with an *opening*:
//
//   - A rank whose memory other ranks touch signals 1, and publishes with it where its memory lies.
//   - A rank that needs to know about the memory of others waits for their signals.
//
// After the opening, every rank continues with one of two parts:
//
//   - the part for registered memory, if all memory that the ranks share is registered;
//   - otherwise the part that copies through the stage.
//
// Both parts have the same opening, so a rank can begin before it knows which part follows. A rank
// whose own memory is not registered knows at once that the staged part follows. It does not wait.
#pragma once

#include <vector>

#include "peal/schedule/schedule.h"

namespace peal::schedule {

/// The first steps of the rank's part. They use the value 1; later steps use larger values, except
/// that a rank that only waits in the opening may signal 1 later.
///   broadcast, scatter, gather:  the root signals 1; the other ranks wait for the root's 1.
///   barrier:                     no steps.
///   other operations:            every rank signals 1; a rank whose own memory is registered waits
///                                for the 1 of the other ranks of its host.
std::vector<Step> opening(const Problem&, Rank self);

/// Whether the rank chooses its part by what other ranks publish in the opening.
bool learns_in_opening(const Problem&, Rank self);

}  // namespace peal::schedule
