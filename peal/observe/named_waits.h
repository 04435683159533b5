// Finds ranks that have not submitted an operation by name for which other ranks wait.
#pragma once

#include <optional>
#include <string>

#include "peal/observe/flight.h"
#include "peal/observe/job_view.h"
#include "peal/observe/why.h"

namespace peal::observe {

/// The diagnosis if a rank waits for an operation by name that other ranks of the group have not
/// submitted. If there are several, takes the operation that has waited the longest. Ranks that
/// have called join() do not count as missing.
std::optional<Diagnosis> named_wait(const JobView& job);

/// The rank's operations by name in flight, of all groups, as names_text.
std::string names_in_flight(const Flight& flight);

}  // namespace peal::observe
