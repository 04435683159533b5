// Runs a sequence of schedules on symbols instead of numbers, as its ranks would. Called by
// `verify`.
//
// The model. Each rank walks its steps in order. A send hands its source to the link's own sender,
// which reads it at some moment until the matching receive has ended, and at the latest before the
// rank's operation ends. A Signal releases what its rank knows; a Wait acquires the first signal
// that satisfies it, since it may see no later one; a receive acquires its send. Before the
// operation the user has written input and output, after it the user may do so again.
//
// One run proves all. Ranks wait only for counters that never fall and for streams in order, so no
// rank can ever choose; and if no two accesses are unordered, every interleaving computes the same.
//
// Around the sequence stand operations that nobody knows, so that schedules which are accepted
// alone are right in every row:
// - Before: every rank of the host has used every stage, and its last signal came after that. The
//   stage's owner may have used it until it begins the sequence.
// - After: the owner writes its stage, once it has ended and has seen the others' last signals.
// That suffices. Take two accesses to a stage in two operations of a row. If the earlier one is
// the owner's, it has happened when the owner begins the later operation, and by "before" the later
// access comes after that. If it is another rank's, it has happened, by "after", when that rank
// gives its last signal in the earlier operation, and by "before" the later access comes after
// that.
#pragma once

#include "peal/verify/world.h"

namespace peal::verify {

/// Runs all ranks until each has ended the sequence or waits for what never comes. What is wrong
/// is in `world.violations`; stops early when there are `most`.
/// Cost: steps x (pieces that they touch + ranks + links).
void walk(World& world, std::size_t most);

}  // namespace peal::verify
