// Collects the records of a failed launch: a file for `peal why`, and the diagnosis in one sentence
// for the report. Called by the program `peal run` when all ranks have ended.
#pragma once

#include <optional>
#include <string>

#include "peal/launch/flights.h"
#include "peal/launch/options.h"
#include "peal/launch/report.h"

namespace peal::launch {

/// Finds the cause of the failure in the records of `job`. Records in a private folder are merged
/// into a file that stays (dump_place.h); other records stay where they are. The sentence quotes an
/// exception that ended a rank by SIGABRT. If the records show no more than the output of the
/// ranks, the result has neither a sentence nor records. A failure of this function is described in
/// the result, and has no other effect. Returns nothing in four cases: all ranks succeeded, all
/// ranks handled a signal, the reader of the report is gone, or no rank of `job` has left a record.
/// Cost: some 400 KB for each rank.
std::optional<PostMortem> examine(const LaunchReport& report,
                                  const RecordPlace& place,
                                  const std::string& job,
                                  const LaunchOptions& options);

}  // namespace peal::launch
