// The postcondition of each operation, as a table: what the output of a rank must hold at the end.
#pragma once

#include <vector>

#include "peal/schedule/schedule.h"
#include "peal/verify/memory.h"

namespace peal::verify {

/// Output elements of `range` hold, in order, the elements from `index` on of the input of rank
/// `source`, or their reduction over all ranks.
struct Postcondition {
  static constexpr Rank kAllRanks = -1;

  Range range;
  Rank source = kAllRanks;
  Elements index;
};

/// The postconditions for the rank's output. Together they cover the output; empty ranges are left
/// out.
std::vector<Postcondition> postconditions(const schedule::Problem&, Rank rank);

}  // namespace peal::verify
