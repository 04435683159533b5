// Halving and doubling: reduce-scatter by recursive halving, then all-gather by recursive doubling.
// In each round of the first a rank keeps half of what it still has, gives the other half to a
// partner and adds what the partner gives; distances halve. The second goes the same way back with
// complete blocks. As few bytes as the ring and few messages: for data of middle size.
//
// Partial sums live in the output; what is overwritten in the second half comes from the very rank
// that was sent it in the first. Ranks beyond a power of two are folded (fold.h). reduce_scatter
// keeps partial sums in the stage and is for powers of two and for what fits there.
//
// Cost, for n ranks, L = floor(log2 n), N = 2^L, a buffer (all blocks together) of S:
//   all_reduce      2 L messages, 2 S (N-1)/N sent per rank; where n is no power of two, one more
//                   message and S for some (a folded rank: only these)
//   reduce_scatter  L messages, S (n-1)/n
// Source: Rabenseifner, "Optimization of collective reduction operations", ICCS 2004, section 4;
// Thakur, Rabenseifner and Gropp 2005, section 4.5.
#pragma once

#include "peal/plan/plan.h"

namespace peal::plan {

extern const Algorithm kHalvingDoubling;

}  // namespace peal::plan
