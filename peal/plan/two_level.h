// Two levels: several hosts with the same number of ranks each. Ranks of a host work on each
// other's memory, as in `direct`. Between hosts, each rank sends its own slice. So all ranks share
// the sending, and as little data as possible crosses between hosts. The folder two_level/ has a
// file for each operation.
//
// Messages are the same whether the memory of a host is registered or not, so each host finds out
// for itself, by the opening (schedule/opening.h). A broadcast and a barrier have no opening. A
// broadcast always goes through the stage, because the root could tell only its own host about its
// memory.
//
// Cost, h hosts of n ranks, a buffer (all blocks together) of S. The table says what a host sends.
// Each of its ranks sends 1/n of that, in the given number of messages:
//   all_reduce      2(h-1)/h S, in 2(h-1) messages per chunk
//   reduce_scatter  (h-1)/h S, in h-1 messages per piece
//   all_gather      (h-1)/h S, in h-1 messages per piece
//   broadcast       in a chain, S, except for the last host: one message per piece; in a tree, the
//                   root's host L S, and each host receives S, with L = log2 h rounded up; the
//                   planner takes the faster of both
//   reduce          S, in h messages per piece; the root's host (h-1)/h S, and it receives twice
//                   that
//   barrier         L tokens, between the first ranks of the hosts
// Synchronisation inside a host:
//   registered      2 synchronisations, of which the opening is one
//   staged, in addition to the opening's signal of each rank:
//     all_reduce    one synchronisation for each of C chunks, and 2h-1 more
//     reduce_scatter, all_gather, reduce
//                   h synchronisations per piece; reduce one more signal of each rank
//   broadcast       one signal of each rank per piece
//   barrier         one signal of each rank
//
// all_to_all, scatter and gather are not here: their bytes cross between hosts only once anyway,
// and two levels would copy them twice more.
// Source: Barnett, Littlefield, Payne and van de Geijn 1993 (hybrid algorithms); the ring of
//   Patarasuk and Yuan 2009.
#pragma once

#include "peal/plan/plan.h"

namespace peal::plan {

extern const Algorithm kTwoLevel;

}  // namespace peal::plan
