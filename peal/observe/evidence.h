// One line on each rank, below the sentence of a Diagnosis.
#pragma once

#include <string>
#include <vector>

#include "peal/observe/job_view.h"

namespace peal::observe {

/// "its process was killed by SIGKILL", "its process still runs", "it left without an error": the
/// most certain fact that is known.
std::string process_text(const RankView& view);

/// One line for each rank: its operation and since when, the ranks that it waited for, the
/// operation that it last finished, and how it ended. The `involved` ranks come first, then others
/// up to a limit. The first error of each host follows.
std::vector<std::string> evidence(const JobView& job, const std::vector<Rank>& involved);

}  // namespace peal::observe
