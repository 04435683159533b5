// Two levels: several hosts with as many ranks each. Ranks of a host work on each other's memory,
// as in `direct`; between hosts each of them carries its own slice, so that all share the sending,
// and what crosses is as little as there can be. How, is in two_level/, an operation a file.
//
// What is on the wire is the same whether the memory of a host is registered or not, so each host
// uses its own as it can. A broadcast always goes through the stage: there the root's memory
// decides, of which it could tell only its own host's ranks.
//
// Cost, h hosts of n ranks, a buffer (all blocks together) of S. What a host sends, each of its
// ranks 1/n of it, in messages of each of those:
//   all_reduce      2(h-1)/h S, in 2(h-1) messages a chunk
//   reduce_scatter  (h-1)/h S, in h-1 messages a piece
//   all_gather      (h-1)/h S, in h-1 messages a piece
//   broadcast       S in a chain, but for its last host: a message a piece; in a tree the root's
//                   host L S and each host receives S, L = log2 h rounded up; whichever is sooner
//   reduce          S, in h messages a piece; the root's host (h-1)/h S, and it receives twice that
//   barrier         L tokens, between the first ranks of the hosts
// Inside a host, registered: 2 synchronisations. Staged: all_reduce one for each of C chunks, and
// 2h-1 besides; reduce_scatter, all_gather and reduce h a piece, and reduce a signal of each rank
// besides; broadcast a signal of each rank a piece; barrier one of each rank.
//
// Not here: all_to_all, scatter and gather, of which no byte crosses more than once as it is, and
// on two levels would be copied twice more.
// Source: Barnett, Littlefield, Payne and van de Geijn 1993 (hybrid algorithms); the ring of
// Patarasuk and Yuan 2009.
#pragma once

#include "peal/plan/plan.h"

namespace peal::plan {

extern const Algorithm kTwoLevel;

}  // namespace peal::plan
