// The half of `direct` that goes through the stages: each rank touches only its own input and
// output.
#pragma once

#include "peal/schedule/schedule.h"

namespace peal::plan {

/// Whether the stage is large enough for pieces.
bool can_stage(const schedule::Problem&);

/// In pieces, after the opening (schedule/opening.h). For all operations but barrier. The count is
/// not zero.
schedule::Part plan_staged(const schedule::Problem&, Rank);

/// Whether the stage is large enough for all data at once.
bool can_stage_whole(const schedule::Problem&);

/// In one piece, without an opening. Every rank does the whole reduction for itself.
schedule::Part plan_staged_whole(const schedule::Problem&, Rank);

}  // namespace peal::plan
