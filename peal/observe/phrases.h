// How the answers of `peal why` put times, ranks and what is known of a rank into words.
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

/// "all_reduce #12 (sum of 1000 f32) of the group world"
std::string operation_text(const Flight& flight, const FlightOperation& operation);

/// With a capital letter and a full stop, also after the words of others, whatever those end with.
std::string as_sentence(std::string text);

}  // namespace peal::observe
