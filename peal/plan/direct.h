// Direct and inline: all ranks share one host, and each rank reads and writes the memory of the
// others. No messages.
//
// A part of direct begins with the opening (schedule/opening.h): one signal of each rank whose
// memory others touch.
//
// Registered memory is used in place. The ranks meet in the opening, which shows that all inputs
// are ready. Then each rank does its share of the work on the memory of all ranks. The ranks meet
// again, after which no rank touches the user's memory any more. In a reduction, each rank owns a
// slice: the owner reduces it from all inputs, in rank order, and stores it into all outputs. Less
// memory traffic is not possible: each input is read once, and each output is written once. Between
// a root and the others one meeting is saved, because only the root has to wait.
//
// Memory that is not registered is staged: a rank copies its input into its stage and signals, and
// the other ranks read it there. Pieces use the banks of the stage in turn, so a rank that has
// waited for piece k+1 knows that it may overwrite piece k: one synchronisation for each piece. No
// rank waits at the end, because the next operation stages in another place (schedule/scratch.h).
//
// Inline is the staged form in one piece and without an opening, whether memory is registered or
// not. It is best for small data, where two copies cost less than a second synchronisation.
//
// Cost, for n ranks, a buffer (all blocks together) of S, P pieces; elements are the sum of those
// that a rank reads and writes:
//   registered, with the opening:
//     all_reduce, all_to_all                      2 synchronisations, 2 S
//     reduce, all_gather, reduce_scatter          2 synchronisations, S + S/n
//     broadcast, scatter, gather                  1 signal of each rank
//   staged, in addition to the opening:
//     all_reduce, few ranks or elements           P synchronisations, (n+3) S: each reduces it all
//     all_reduce, otherwise                       P+1 synchronisations, 5 S - 2 S/n: each a slice
//     broadcast, scatter, gather, reduce          P signals of each rank
//     all_gather, reduce_scatter, all_to_all      P synchronisations
//   barrier                                       1 synchronisation
#pragma once

#include "peal/plan/plan.h"

namespace peal::plan {

extern const Algorithm kInline;
extern const Algorithm kDirect;

}  // namespace peal::plan
