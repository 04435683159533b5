// The half of `direct` that works directly on the inputs and outputs of the ranks.
#pragma once

#include "peal/schedule/schedule.h"

namespace peal::plan {

/// For all operations but barrier, on registered memory. The count is not zero.
schedule::Part plan_registered(const schedule::Problem&, Rank);

}  // namespace peal::plan
