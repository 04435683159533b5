// What is known of each rank, a line for each: below the sentence of a Diagnosis.
#pragma once

#include <string>
#include <vector>

#include "peal/observe/job_view.h"

namespace peal::observe {

/// "its process was killed by SIGKILL", "its process still runs", "it left in order"; what is known
/// best.
std::string process_text(const RankView& view);

/// What each rank was in, since when, for whom it waited, what it last finished and how it ended.
/// First `involved`, then the others, as many as one reads; then the first errors in time, one for
/// each host.
std::vector<std::string> evidence(const JobView& job, const std::vector<Rank>& involved);

}  // namespace peal::observe
