// What the ranks of a launch that failed have left, put together: a file for `peal why`, and its
// answer in a sentence for the report. Called by the program `peal run` when all have ended.
#pragma once

#include <optional>
#include <string>

#include "peal/launch/flights.h"
#include "peal/launch/options.h"
#include "peal/launch/report.h"

namespace peal::launch {

/// Nothing where all went well, where nobody reads the report any more, and where no rank of `job`
/// has left a record: then the report itself knows as much. Records in a private folder are merged
/// into a file that stays (dump_place.h), others stay where they are. What goes wrong here is in
/// the result, and changes nothing else. Cost: some 400 KB for each rank.
std::optional<PostMortem> examine(const LaunchReport& report,
                                  const Flights& flights,
                                  const std::string& job,
                                  const LaunchOptions& options);

}  // namespace peal::launch
