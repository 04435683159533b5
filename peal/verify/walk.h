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
// Before the sequence stand operations that nobody knows, so that schedules which are accepted
// alone are right in every row: every rank of the host has used all scratch, and has given a signal
// after that, for which a look back waits. The scratch's owner may have used it until it begins the
// sequence.
// That suffices. Take two accesses to one place in two operations of a row that signal. If the
// earlier one is the owner's, it has happened when the owner begins the later operation, and the
// later access comes after that. If it is another rank's, it has happened when that rank signals in
// the operation after the earlier one, as every rank does in every operation that signals; that is
// what a look back waits for (schedule/scratch.h), and the later access comes after that.
#pragma once

#include "peal/verify/world.h"

namespace peal::verify {

/// Runs all ranks until each has ended the sequence or waits for what never comes. What is wrong
/// is in `world.violations`; stops early when there are `most`.
/// Cost: steps x (pieces that they touch + ranks + links).
void walk(World& world, std::size_t most);

}  // namespace peal::verify
