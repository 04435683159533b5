// Ranks in different operations where all should be in the same. Used by why.cpp.
#pragma once

#include <optional>

#include "peal/observe/job_view.h"
#include "peal/observe/why.h"

namespace peal::observe {

/// The first collective of any group in which ranks differ, with who was in what, the fewest first;
/// nothing where none do. Cost: a look at every operation that is recorded.
std::optional<Diagnosis> disagreement(const JobView& job);

}  // namespace peal::observe
