// Checks the results of a run. Called by the run and after it.
#pragma once

#include "peal/verify/state.h"

namespace peal::verify {

/// A rank is about to end its operation. Checks that its output meets the postconditions, and
/// that no rank leaves a barrier before all ranks have entered it.
void check_result(State& state, Rank rank);

/// The run is over. Checks that no rank waits forever, all ranks of an all_reduce hold the same
/// bits, every message was received, and every store to a stage was read.
void check_outcome(State& state);

}  // namespace peal::verify
