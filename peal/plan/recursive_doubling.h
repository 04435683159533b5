// Recursive doubling: in round k, ranks exchange all their data with a rank 2^k away, so the data
// of each rank doubles in every round. This is the smallest possible number of rounds. It is best
// for small data, where the number of messages matters and their size does not.
//
// all_reduce: partners exchange their sums and add them, with the lower rank's sum first. So all
// ranks compute the same tree in the same order. Ranks beyond a power of two are folded (fold.h). A
// sum that was sent must stay unchanged until the partner has received it, so the sum of each round
// has a place of its own in the stage. If the stage is too small for that, pieces alternate between
// its two halves: a rank that has finished piece k+1 knows that all ranks have finished piece k.
// all_gather: for any number of ranks, each rank gets its missing blocks from the ranks ahead
// (Bruck).
// barrier: the message of round k goes 2^k ranks ahead (dissemination).
//
// Cost, for n ranks, L = floor(log2 n), a buffer of S, blocks of B:
//   all_reduce  L messages per piece, L S sent per rank; if n is not a power of two, some ranks
//               send one more message (a folded rank: 1 message and S)
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
