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

/// Adds the ranks that failed because of another rank to the victims of the report. If a rank
/// failed by itself, the victims are also removed from the causes: the records name the rank that
/// left first as a cause, even if another rank's error made it leave.
void add_victims(const Outcomes& outcomes, LaunchReport& report);

/// The error of each rank; nothing for a rank that has returned.
std::vector<std::optional<Error>> errors_of(const LaunchReport& report,
                                            const Outcomes& outcomes,
                                            Returns returns);

/// The error that the caller gets. At least one of `errors` must exist.
SpawnError spawn_error(const LaunchReport& report, std::vector<std::optional<Error>> errors);

}  // namespace peal::launch
