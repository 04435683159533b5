// For tests that something is not waited for, where how long the wait would be is a constant.
#pragma once

#include <algorithm>

#include "peal/base/clock.h"

namespace peal {

/// Returns the shortest of up to 20 runs of `run`, which returns how long it took; stops at one
/// below `limit`. On a busy machine a run may take long by chance. A run that waits for what it
/// must not wait for takes long every time.
template <class Run>
Duration quickest(Duration limit, Run run) {
  Duration least = Duration::max();
  for (int i = 0; i < 20 && least >= limit; ++i) least = std::min<Duration>(least, run());
  return least;
}

}  // namespace peal
