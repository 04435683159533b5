// How long a host gets no ranks after a failure of the host. Used by elastic jobs and by jobs that
// start again.
#pragma once

#include <chrono>

#include "peal/base/clock.h"

namespace peal::launch {

struct Cooldown {
  std::chrono::seconds low{10};
  std::chrono::seconds high{300};
  friend bool operator==(const Cooldown&, const Cooldown&) = default;
};

/// After failure `failures` of a host, counted from 0:
///   min(high, low · 2^failures + random · low), random in [0, 1).
Duration cooldown_after(int failures, const Cooldown& range, double random);

}  // namespace peal::launch
