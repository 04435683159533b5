// The stop flag of a launcher that is a rank itself: `peal run` on a node of a job that another
// launcher has started. Used by launcher.cpp and elastic/driver.cpp.
#pragma once

#include <optional>

#include "peal/system/stop_flag.h"

namespace peal::launch {

/// By this flag, the outer launcher asks this process to stop. Then this process warns its own
/// ranks. Nothing if no outer launcher has started this process.
std::optional<StopFlag> outer_stop_flag();

}  // namespace peal::launch
