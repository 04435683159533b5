// The errors of a spawn as values, from the ends of the processes and the outcomes of the function.
// Called by `peal::spawn`.
#pragma once

#include <optional>
#include <vector>

#include "peal/launch/outcome.h"
#include "peal/launch/report.h"
#include "peal/launch/spawn.h"

namespace peal::launch {

using Outcomes = std::vector<std::optional<Outcome>>;  // by rank

/// Adds the ranks whose function failed because of another rank to the victims of the report. These
/// ranks are no longer causes if a rank failed by itself that is not a victim: the records name the
/// rank that left first, also if it left with the error of another rank.
void add_victims(const Outcomes& outcomes, LaunchReport& report);

/// The error of each rank; nothing for a rank that has returned.
std::vector<std::optional<Error>> errors_of(const LaunchReport& report,
                                            const Outcomes& outcomes,
                                            Returns returns);

/// The error that the caller gets. At least one of `errors` must exist.
SpawnError spawn_error(const LaunchReport& report, std::vector<std::optional<Error>> errors);

}  // namespace peal::launch
