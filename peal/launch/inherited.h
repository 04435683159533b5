// What a launch inside a rank of another launch takes over from it. Called by `peal run` and
// `peal bench`.
#pragma once

#include "peal/launch/rank_process.h"

namespace peal::launch {

/// `variables` without those that a launch gave to the rank in which this process runs, such as the
/// folder of its records and its faults (base/launch_mark.h). What was set since then stays.
Variables without_those_of_a_rank(const Variables& variables);

}  // namespace peal::launch
