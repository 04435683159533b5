// Runs a sequence of schedules on symbols instead of numbers. Called by `verify`.
//
// The model:
// - Each rank walks its steps in order.
// - A send gives its source to the sender of the link. The sender reads the source at some moment
//   before the matching receive has ended, and at the latest before the rank's operation ends.
// - A Signal releases what its rank knows. A Wait acquires the first signal that satisfies it,
//   because the rank may not see any later one. A receive acquires its send.
// - The user writes input and output before the operation, and may do so again after it.
//
// One run proves all interleavings. Ranks wait only for counters that never fall and for streams in
// order, so a rank never has a choice. And if all accesses to a place are ordered, every
// interleaving computes the same.
//
// A schedule that is accepted alone is correct in every sequence, because the run begins after
// unknown earlier operations: every rank of the host has used all scratch, and has signalled after
// that; a wait for 0 waits for this signal. The owner of the scratch may have used it until the
// sequence begins.
// That suffices. Take two accesses to one place, in two operations of a sequence that signal.
// - If the earlier access is by the owner, it happens before the owner begins the later operation,
//   and the later access comes after that.
// - If the earlier access is by another rank, it happens before that rank signals in the next
//   operation; every rank signals in every operation with signals. A wait for 0 waits for that
//   signal (schedule/scratch.h), and the later access comes after the wait.
#pragma once

#include "peal/verify/state.h"

namespace peal::verify {

/// Runs all ranks until each has ended the sequence or cannot continue. Adds errors to
/// `state.violations`, and stops early when there are `most`.
/// Cost: steps x (pieces that they touch + ranks + links).
void run(State& state, std::size_t most);

}  // namespace peal::verify
