// Direct and inline: all ranks share one host, and each reads and writes the others' memory; no
// messages.
//
// Registered memory is used in place: the ranks meet (all inputs are there), each does its share of
// the work on everybody's memory, and they meet again (nobody touches the user's memory any more).
// The owner of a slice reduces it from all inputs, in rank order, and stores it into all outputs.
// This is the floor: each input is read once and each output written once. Between a root and the
// others one meeting is saved: only the root has something to wait for.
//
// Foreign memory is staged: a rank copies its input into its own stage and signals, the others read
// it there. Pieces go through the banks of the stage in turn, so that a rank that waits for piece
// k+1 need not ask whether piece k may be overwritten: one synchronisation for each piece. Nobody
// waits at the end: the next operation stages elsewhere (schedule/scratch.h).
//
// Inline is the latter in one piece, whatever the memory is: the best for small data, where two
// copies cost less than a second synchronisation.
//
// Cost, for n ranks, a buffer (all blocks together) of S, P pieces; elements are what a rank reads
// and writes together:
//   registered: all_reduce, all_to_all            2 synchronisations, 2 S
//   registered: reduce, all_gather,
//               reduce_scatter                    2 synchronisations, S + S/n
//   registered: broadcast, scatter, gather        1 signal of each rank
//   staged: all_reduce, of few ranks or elements  P synchronisations, (n+3) S: each reduces it all
//   staged: all_reduce, of many                   P+1 synchronisations, 5 S - 2 S/n: each a slice
//   staged: broadcast, scatter, gather, reduce    P signals of each rank
//   staged: all_gather, reduce_scatter,
//           all_to_all                            P synchronisations
//   barrier                                       1 synchronisation
#pragma once

#include "peal/plan/plan.h"

namespace peal::plan {

extern const Algorithm kInline;
extern const Algorithm kDirect;

}  // namespace peal::plan
