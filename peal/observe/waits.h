// Ranks that wait for each other, and for whom nobody came. Used by why.cpp.
#pragma once

#include <string>
#include <vector>

#include "peal/base/units.h"
#include "peal/observe/job_view.h"
#include "peal/observe/why.h"

namespace peal::observe {

/// Follows who waits for whom from `start`, which is in the middle of something: to a ring of ranks
/// (deadlock; or an error, where they are where they should be and only their data is missing), or
/// to those that were in no operation (missing).
Diagnosis wait_of(const JobView& job, Rank start);

/// "never entered all_reduce #12 (...) of the group world, in which ranks 0 and 1 waited": of the
/// `missing`, ascending, for which `waiter` waited.
std::string absence(const JobView& job, const std::vector<Rank>& missing, Rank waiter);

/// What the rank did last, and what became of it.
std::string last_word(const JobView& job, Rank rank);

}  // namespace peal::observe
