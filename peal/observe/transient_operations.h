// Removes false waits from the records of a running job. The records are read one after the other
// while the ranks continue. So a rank that is ahead may seem to wait for another rank.
#pragma once

#include <span>
#include <vector>

#include "peal/observe/flight.h"

namespace peal::observe {

/// Removes from `now` the operations that are under way and were not under way in `before`, read a
/// moment earlier. An operation that is under way in both is blocked or takes long.
void drop_transient_operations(std::span<const Flight> before, std::vector<Flight>& now);

}  // namespace peal::observe
