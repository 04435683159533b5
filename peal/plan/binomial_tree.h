// Binomial tree: what the root has reaches 1, 2, 4, ... ranks in as many rounds, or the other way
// round. For small data between a root and all others.
//
// Ranks are numbered from the root on. The parent of number v is v without its lowest set bit; the
// children of v are v + 1, v + 2, v + 4, ... below v plus its lowest set bit. So the subtree of v
// is a run of numbers that begins with v, and a gather or scatter keeps it as one run of blocks in
// the stage. Nothing in the stage is written twice, since nobody hears from his parent that it has
// got what was sent: what does not fit into the stage at once is not for this algorithm. Nor are
// gather and scatter of unequal blocks, of which a rank does not know its children's sizes.
//
// Cost, for n ranks, L = ceil(log2 n), blocks of B (one rank's whole buffer where there are none):
//   broadcast        the root L messages and L B; a rank with c children c messages and c B
//   reduce           1 message and B; the root nothing
//   gather           1 message, (size of the subtree) B; a rank whose subtree passes the last rank
//                    2 messages; the root nothing
//   scatter          a rank sends its subtree's blocks but its own, one message a child; 2 to one
//                    whose subtree passes the last rank
//   barrier          at most L messages
// Source: Thakur, Rabenseifner and Gropp 2005, sections 3.1 and 4.1 to 4.3.
#pragma once

#include "peal/plan/plan.h"

namespace peal::plan {

extern const Algorithm kBinomialTree;

}  // namespace peal::plan
