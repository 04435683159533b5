// Ring: every rank sends to the next one and receives from the one before, and nothing else. All
// links are busy all the time in one direction, so it is the way to move large data between hosts;
// its many steps make it a slow one for small data.
//
// Reduce-scatter: in n-1 steps a partial sum of each block travels once around and grows by every
// rank's contribution; block r ends complete at rank r. All-gather: in n-1 more steps each complete
// block travels once around. Together they are an all_reduce. A reduce lets every rank send its
// complete block to the root instead. A broadcast is a chain: each rank passes pieces on while the
// next ones arrive.
//
// Where the partial sums live: in the output where it is as large as the input, else in the stage,
// piece by piece. A partial sum must stay until the next rank has received it, which is known when
// the news has come around the ring; so a stage has as many places as there are ranks.
//
// Cost, for n ranks and a buffer (all blocks together) of S:
//   all_reduce      2(n-1) messages, 2 S (n-1)/n sent per rank
//   reduce_scatter  (n-1) messages a piece, S (n-1)/n
//   all_gather      (n-1) messages, S (n-1)/n
//   reduce          n messages a piece (the root n-1), S; the root S (n-1)/n
//   broadcast       1 message a piece, S; the rank before the root nothing
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", JPDC 2009, section 4.
#pragma once

#include "peal/plan/plan.h"

namespace peal::plan {

/// Pieces of a broadcast: large against the cost of a message, small against the whole.
inline constexpr Elements kRingBroadcastPiece(64 << 10);

extern const Algorithm kRing;

}  // namespace peal::plan
