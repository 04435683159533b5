// Ring: every rank sends only to the next rank and receives only from the rank before. All links
// are busy all the time in one direction, so the ring suits large data between hosts. Its many
// steps make it slow for small data.
//
// Reduce-scatter: in n-1 steps, a partial sum of each block travels once around the ring, and every
// rank adds its contribution; block r ends complete at rank r. All-gather: in n-1 more steps, each
// complete block travels once around. Together they are an all_reduce. In a reduce, every rank
// sends its complete block to the root instead. A broadcast is a chain: each rank passes pieces on
// while the next pieces arrive.
//
// Partial sums live in the output if it is as large as the input, otherwise in the stage, piece by
// piece. A partial sum must stay until the next rank has received it. A rank knows this when later
// messages have come around the ring. So a stage has a place for each sum of a block, and one more
// if the next piece uses the places again.
//
// Cost, for n ranks and a buffer (all blocks together) of S:
//   all_reduce      2(n-1) messages, 2 S (n-1)/n sent per rank
//   reduce_scatter  (n-1) messages per piece, S (n-1)/n
//   all_gather      (n-1) messages, S (n-1)/n
//   reduce          n messages per piece (the root n-1), S; the root S (n-1)/n
//   broadcast       1 message per piece, S; the rank before the root nothing
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", JPDC 2009, section 4.
#pragma once

#include "peal/plan/plan.h"

namespace peal::plan {

/// The pieces of a broadcast: large against the cost of a message, small against the whole buffer.
inline constexpr Elements kRingBroadcastPiece(64 << 10);

extern const Algorithm kRing;

}  // namespace peal::plan
