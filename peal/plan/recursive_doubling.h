// Recursive doubling: in round k ranks exchange all they have with a rank 2^k away, so that what a
// rank knows doubles in each round. The fewest rounds there can be; for small data, where the
// number of messages counts and not their size.
//
// all_reduce: partners exchange their sums and add them, the lower rank's first: so all ranks
// compute the same tree in the same order. Ranks beyond a power of two are folded (fold.h). A sum
// that was sent must stay until the partner has received it, so each round's has a place of its own
// in the stage. Where that is too much for the stage, pieces alternate between two halves of it: a
// rank that has finished piece k+1 knows that everyone had finished piece k.
// all_gather: for any number of ranks, each gets what it lacks from those behind it (Bruck).
// barrier: round k's message goes 2^k ranks ahead (dissemination).
//
// Cost, for n ranks, L = floor(log2 n), a buffer of S, blocks of B:
//   all_reduce  L messages a piece, L S sent per rank; where n is no power of two, one more message
//               for some (a folded rank: 1 and S)
//   all_gather  ceil(log2 n) rounds of 1 or 2 messages, (n-1) B
//   barrier     ceil(log2 n) messages
// Source: Thakur, Rabenseifner and Gropp 2005, section 4.5; Bruck, Ho, Kipnis, Upfal and
// Weathersby, "Efficient algorithms for all-to-all communications in multiport message-passing
// systems", IEEE TPDS 1997, section 3; Hensgen, Finkel and Manber, "Two algorithms for barrier
// synchronization", IJPP 1988.
#pragma once

#include "peal/plan/plan.h"

namespace peal::plan {

extern const Algorithm kRecursiveDoubling;

}  // namespace peal::plan
