// For tests which check that a call does not wait. The length of the wrong wait must be known.
#pragma once

#include <algorithm>

#include "peal/base/clock.h"

namespace peal {

/// Calls `run`, which returns its duration, up to 20 times. Returns the shortest duration; stops at
/// the first one below `limit`. On a busy machine a run may be slow by chance. A run with the wrong
/// wait is slow every time.
template <class Run>
Duration quickest(Duration limit, Run run) {
  Duration least = Duration::max();
  for (int i = 0; i < 20 && least >= limit; ++i) least = std::min<Duration>(least, run());
  return least;
}

}  // namespace peal
