// Pairwise exchange: every rank exchanges data directly with every other rank, in rounds. In round
// k, rank r sends to rank r + k and receives from rank r - k (modulo n). So no rank is the target
// of all others at once. Pairwise does every operation, for blocks of any sizes, and copies nothing
// twice. The number of messages grows with the number of ranks. Best for all_to_all, for few ranks,
// and if blocks differ and no rank knows all sizes.
//
// A reduction goes straight from the message into the output. In all_reduce, every rank sends all
// its data to all others, and every rank adds in rank order. In place, a rank sends its values from
// a copy in the stage. If the stage is too small, all ranks work in pieces that alternate between
// two halves of the stage: a rank that has received piece k of all others knows that they have
// received its piece k-1.
//
// Cost, for n ranks and blocks of B (without blocks, B is the buffer of one rank):
//   all_to_all, all_gather, reduce_scatter   n-1 messages, (n-1) B sent per rank
//   all_reduce                               n-1 messages per piece, (n-1) B
//   broadcast, scatter                       the root n-1 messages and (n-1) B, the others nothing
//   reduce, gather                           1 message, B; the root nothing
//   barrier                                  n-1 messages
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005, section 3.2 (all_to_all) and 4 (reduce_scatter).
#pragma once

#include "peal/plan/plan.h"

namespace peal::plan {

extern const Algorithm kPairwise;

}  // namespace peal::plan
