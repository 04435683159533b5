// What every way of explaining a failed run ends with. Used by why.cpp and the files beside it.
#pragma once

#include <string>
#include <vector>

#include "peal/base/units.h"
#include "peal/observe/job_view.h"
#include "peal/observe/why.h"

namespace peal::observe {

/// `text` as a sentence, with who runs or stands still now where the job is not over, and the
/// evidence on those ranks, the first of them first.
Diagnosis conclude(const JobView& job,
                   Diagnosis::Cause cause,
                   std::vector<Rank> ranks,
                   const std::string& text);

}  // namespace peal::observe
