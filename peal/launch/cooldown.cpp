#include "peal/launch/cooldown.h"

#include <algorithm>
#include <cmath>

namespace peal::launch {

Duration cooldown_after(int failures, const Cooldown& range, double random) {
  using Seconds = std::chrono::duration<double>;
  const double low = Seconds(range.low).count();
  const double high = Seconds(range.high).count();
  const double pause = std::min(high, std::ldexp(low, failures) + random * low);
  return std::chrono::duration_cast<Duration>(Seconds(pause));
}

}  // namespace peal::launch
