// Detects ranks in different operations where all should be in the same one. Used by why.cpp.
#pragma once

#include <optional>

#include "peal/observe/job_view.h"
#include "peal/observe/why.h"

namespace peal::observe {

/// Describes the first collective of any group in which ranks differ: which ranks were in which
/// operation, the smallest side first. Returns nothing if all ranks agree.
/// Cost: a look at every operation that is recorded.
std::optional<Diagnosis> disagreement(const JobView& job);

}  // namespace peal::observe
