// Pairwise exchange: everyone deals with everyone else directly, in rounds: in round k a rank sends
// to the one k further on and receives from the one k before, so that no rank is everybody's target
// at once. It does every operation, for blocks of any sizes, and copies nothing twice; it needs as
// many messages as there are ranks. Best for all_to_all, for few ranks, and where blocks differ so
// that nobody knows all sizes.
//
// A reduction goes straight from the message into the output. all_reduce sends everything to
// everybody, who all add in rank order; in place the own values are sent from a copy in the stage,
// in pieces that alternate between two halves of it: a rank that has got piece k of all others
// knows that they have got piece k-1 of its own.
//
// Cost, for n ranks and blocks of B (one rank's whole buffer where there are no blocks):
//   all_to_all, all_gather, reduce_scatter   n-1 messages, (n-1) B sent per rank
//   all_reduce                               n-1 messages a piece, (n-1) B
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
