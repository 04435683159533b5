// What is to be said of where a walk has led. Called by the walk and after it.
#pragma once

#include "peal/verify/world.h"

namespace peal::verify {

/// A rank is about to end its operation: its output is what was promised, and nobody leaves a
/// barrier before everybody has entered it.
void check_result(World& world, Rank rank);

/// The walk is over: no rank waits for ever; all ranks of an all_reduce hold the same bits; every
/// message was received and every store to a stage read.
void check_outcome(World& world);

}  // namespace peal::verify
