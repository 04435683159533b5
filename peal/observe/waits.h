// Diagnoses ranks that wait for each other or for a missing rank. Used by why.cpp.
#pragma once

#include <string>
#include <vector>

#include "peal/base/units.h"
#include "peal/observe/job_view.h"
#include "peal/observe/why.h"

namespace peal::observe {

/// Follows the waits from `start`, which has an unfinished operation. The chain ends in a ring of
/// ranks or in ranks that were in no operation (missing). A ring is a deadlock, or an error if all
/// its ranks are in the right operation and only data is missing.
Diagnosis wait_of(const JobView& job, Rank start);

/// "never entered all_reduce #12 (...) of the group world, in which ranks 0 and 1 waited": for the
/// `missing` ranks, ascending, that `waiter` waited for.
std::string absence(const JobView& job, const std::vector<Rank>& missing, Rank waiter);

/// The last operation of the rank, and the state of its process.
std::string last_word(const JobView& job, Rank rank);

}  // namespace peal::observe
