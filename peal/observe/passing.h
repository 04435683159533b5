// Of a job that runs, what its records say that was true for a moment only. They are read one after
// the other while the ranks go on: one that is ahead of another then looks as if it waited for it.
#pragma once

#include <span>
#include <vector>

#include "peal/observe/flight.h"

namespace peal::observe {

/// Takes out of `now` the operations that are under way there and were not a moment `before`. What
/// is under way in both stands still, or takes long.
void drop_passing(std::span<const Flight> before, std::vector<Flight>& now);

}  // namespace peal::observe
