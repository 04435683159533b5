// The last step of every explanation of a failed run. Used by why.cpp and the files beside it.
#pragma once

#include <string>
#include <vector>

#include "peal/base/units.h"
#include "peal/observe/job_view.h"
#include "peal/observe/why.h"

namespace peal::observe {

/// Makes a Diagnosis: `text` as its sentence, and the evidence on all ranks, first on those in
/// `ranks`. If the job is not over, the sentence also names the ranks that run or are stopped now.
Diagnosis make_diagnosis(const JobView& job,
                         Diagnosis::Cause cause,
                         std::vector<Rank> ranks,
                         const std::string& text);

}  // namespace peal::observe
