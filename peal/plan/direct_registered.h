// The half of `direct` that works on the ranks' own inputs and outputs.
#pragma once

#include "peal/schedule/schedule.h"

namespace peal::plan {

/// For all operations but barrier, of more than no elements, on memory that is registered.
schedule::Part plan_registered(const schedule::Problem&, Rank);

}  // namespace peal::plan
