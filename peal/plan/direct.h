// Direct: all ranks share one host, and each reads and writes the others' memory; no messages.
//
// Registered memory is used in place: the ranks meet (all inputs are there), each does its share of
// the work on everybody's memory, and they meet again (nobody touches the user's memory any more).
// The owner of a slice reduces it from all inputs, in rank order, and stores it into all outputs.
// This is the floor: each input is read once and each output written once. Between a root and the
// others one meeting is saved: only the root has something to wait for.
//
// Foreign memory, and small data of any kind, is staged: a rank copies its input into its own stage
// and signals, the others read it there. Pieces go through the banks of the stage in turn, so that
// a rank that waits for piece k+1 need not ask whether piece k may be overwritten: one
// synchronisation for each piece. Nobody waits at the end: that the stage was read is what the next
// operation that writes it makes sure of (builder.h).
//
// Cost, for n ranks, a buffer (all blocks together) of S, P pieces; bytes are what a rank moves,
// reads and writes together:
//   all_reduce, reduce, registered       2 synchronisations, 2 S (reduce: S + S/n)
//   all_gather, reduce_scatter,
//   all_to_all, registered               2 synchronisations, S + S/n (all_to_all 2 S)
//   broadcast, scatter, gather           1 signal of the root and 1 of each other rank
//   (registered),
//                                        or of each a piece (staged)
//   all_reduce, staged, few or small     P synchronisations, (n+3) S: every rank reduces everything
//   all_reduce, staged, many and large   P+1 synchronisations, 5 S: every rank reduces its slice
//   barrier                              1 synchronisation
#pragma once

#include "peal/plan/plan.h"

namespace peal::plan {

extern const Algorithm kDirect;

}  // namespace peal::plan
