// Where the launcher has put the stop flag of this process (system/stop_flag.h). Read by init, by
// the Python module, and by a `peal run` inside a rank.
#pragma once

#include <string>

#include "peal/config/environment.h"

namespace peal {

/// The value of PEAL_STOP_FLAG; empty: there is no flag.
std::string stop_flag_path(const Environment& environment);

}  // namespace peal
