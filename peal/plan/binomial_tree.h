// Binomial tree: the data of the root reaches 1, 2, 4, ... ranks, doubling each round; or it flows
// from all ranks to the root in the reverse order. It is best for small data between a root and all
// others.
//
// Ranks are numbered from the root on. The parent of number v is v without its lowest set bit. The
// children of v are v + 1, v + 2, v + 4, ... below v plus its lowest set bit. So the subtree of v
// is a run of numbers that begins with v, and gather and scatter keep it as one run of blocks in
// the stage.
//
// The algorithm does not apply
//   - if the data does not fit into the stage at once: no place of the stage is written twice,
//     because a child gets no message from its parent that its data has arrived;
//   - to gather and scatter of unequal blocks: a rank does not know the sizes of its children's
//     blocks.
//
// Cost, for n ranks, L = ceil(log2 n), blocks of B (without blocks, B is the buffer of one rank):
//   broadcast        the root L messages and L B; a rank with c children c messages and c B
//   reduce           1 message and B; the root nothing
//   gather           1 message, (size of the subtree) B; a rank whose subtree passes the last rank
//                    2 messages; the root nothing
//   scatter          a rank sends the blocks of its subtree except its own, one message per child;
//                    2 messages to a child whose subtree passes the last rank
//   barrier          at most L messages
// Source: Thakur, Rabenseifner and Gropp 2005, sections 3.1 and 4.1 to 4.3.
#pragma once

#include "peal/plan/plan.h"

namespace peal::plan {

extern const Algorithm kBinomialTree;

}  // namespace peal::plan
