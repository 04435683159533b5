// What each operation promises its ranks, as a table of places.
#pragma once

#include <vector>

#include "peal/schedule/schedule.h"
#include "peal/verify/memory.h"

namespace peal::verify {

/// Output elements of `range` hold, in order, the elements from `index` on of the input of rank
/// `source`, or their reduction over all ranks.
struct Promise {
  static constexpr Rank kAllRanks = -1;

  Range range;
  Rank source = kAllRanks;
  Elements index;
};

/// Together they cover the rank's output; empty ranges are left out.
std::vector<Promise> promises(const schedule::Problem&, Rank rank);

}  // namespace peal::verify
