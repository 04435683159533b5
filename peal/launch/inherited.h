// Removes the variables that a launch inside a rank must not inherit from the outer launch. Called
// by `peal run` and `peal bench`.
#pragma once

#include "peal/launch/rank_command.h"

namespace peal::launch {

/// `variables` without those that a launch gave to the rank in which this process runs, such as the
/// folder of its records and its faults (config/launch_mark.h). Variables set since then stay.
Variables without_those_of_a_rank(const Variables& variables);

}  // namespace peal::launch
