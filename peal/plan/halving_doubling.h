// Halving and doubling: a reduce-scatter by recursive halving, then an all-gather by recursive
// doubling. In each round of the first half, a rank keeps one half of its part, sends the other
// half to a partner, and adds what the partner sends. The distance between partners halves. The
// second half goes the same way back with complete blocks. The algorithm sends as few bytes as the
// ring, in fewer messages. It is best for data of medium size.
//
// Partial sums live in the output. What the second half overwrites comes from the same rank to
// which it was sent in the first half. Ranks beyond a power of two are folded (fold.h).
// reduce_scatter keeps partial sums in the stage. It applies only if the number of ranks is a power
// of two and the partial sums fit into the stage.
//
// Cost, for n ranks, L = floor(log2 n), N = 2^L, a buffer (all blocks together) of S:
//   all_reduce      2 L messages, 2 S (N-1)/N sent per rank; if n is not a power of two, some ranks
//                   send one more message and S (a folded rank: only these)
//   reduce_scatter  L messages, S (n-1)/n
// Source: Rabenseifner, "Optimization of collective reduction operations", ICCS 2004, section 4;
// Thakur, Rabenseifner and Gropp 2005, section 4.5.
#pragma once

#include "peal/plan/plan.h"

namespace peal::plan {

extern const Algorithm kHalvingDoubling;

}  // namespace peal::plan
