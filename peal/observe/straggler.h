// Finds the rank that all others wait for although nothing failed. Used by why.cpp.
#pragma once

#include <optional>

#include "peal/observe/job_view.h"
#include "peal/observe/why.h"

namespace peal::observe {

/// Returns nothing if no rank stands out.
/// Cost: a look at every operation that is recorded.
std::optional<Diagnosis> straggler(const JobView& job);

}  // namespace peal::observe
