// The half of `direct` that goes through the stages: inputs and outputs are touched by their own
// rank only.
#pragma once

#include "peal/schedule/schedule.h"

namespace peal::plan {

/// Whether the stage is large enough for pieces, and all ranks know all sizes.
bool can_stage(const schedule::Problem&);

/// In pieces. For all operations but barrier, of more than no elements.
schedule::Part plan_staged(const schedule::Problem&, Rank);

/// Whether it is large enough for everything at once.
bool can_stage_whole(const schedule::Problem&);

/// In one piece, of which a reduction is done by everybody for itself.
schedule::Part plan_staged_whole(const schedule::Problem&, Rank);

}  // namespace peal::plan
