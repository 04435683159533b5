// Formats times, ranks, operations and groups for the answers of `peal why`.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "peal/observe/flight.h"
#include "peal/observe/rank_end.h"

namespace peal::observe {

/// "17:22:46.123456", UTC.
std::string time_text(WallTime time);

/// "3.2 s", "15 ms", "40 us"
std::string length_text(std::chrono::nanoseconds length);

/// "rank 3", "ranks 0 and 2", "ranks 0 to 6 and 8"; ranks in rising order, at least one.
std::string ranks_text(const std::vector<Rank>& ranks);

/// "all_reduce #12 (sum of 1000 f32) of the group world". If the group has operations by name:
/// `allreduce "x" of the group world`, with the names in flight, or for a finished operation the
/// last name; without such a name, "an agreement on operations by name of the group world".
std::string operation_text(const Flight& flight, const FlightOperation& operation);

/// "the group world", for the group's number in the flight; "its group" if the record has no name.
std::string group_text(const Flight& flight, std::uint8_t group);

/// Capitalises the first letter and appends a full stop, unless `text` ends with one.
std::string as_sentence(std::string text);

}  // namespace peal::observe
