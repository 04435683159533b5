// Two levels: several hosts with as many ranks each. Ranks of a host work on each other's memory,
// as in `direct`; between hosts each of them carries its own slice, so that all share the sending.
//
//   1. The owner of a slice reduces it from the inputs of its host's ranks.
//   2. The owners of one slice on all hosts reduce it around a ring of hosts, and bring the result
//      around again: the host's part of the ring algorithm, on 1/n of the data for each of n ranks.
//   3. The owner gives the slice to the other ranks of its host.
//
// Large buffers go through the three in chunks, and while one chunk is under way between hosts, the
// ranks reduce the next. What is on the wire is the same whether the memory of a host is registered
// or not, so each host uses its own as it can.
//
// Cost, h hosts of n ranks, a buffer of S: each host sends 2(h-1)/h S, each rank 1/n of that, in
// 2(h-1) messages a chunk. Inside the host, registered: 2 synchronisations; staged: one for each of
// C chunks, and 2h besides.
// Source: Barnett, Littlefield, Payne and van de Geijn 1993 (hybrid algorithms); the ring of
// Patarasuk and Yuan 2009.
#pragma once

#include "peal/plan/plan.h"

namespace peal::plan {

extern const Algorithm kTwoLevel;

}  // namespace peal::plan
