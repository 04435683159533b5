#include "peal/observe/transient_operations.h"

#include <algorithm>

namespace peal::observe {
namespace {

bool was_under_way(const FlightOperation& operation, const Flight& before) {
  return std::ranges::any_of(before.operations, [&](const FlightOperation& earlier) {
    return earlier.ordinal == operation.ordinal && earlier.is_under_way();
  });
}

bool was_in_flight(const FlightName& name, const Flight& before) {
  return std::ranges::any_of(before.names, [&](const FlightName& earlier) {
    return earlier.ordinal == name.ordinal && !earlier.end;
  });
}

}  // namespace

void drop_transient_operations(std::span<const Flight> before, std::vector<Flight>& now) {
  for (Flight& flight : now) {
    const auto earlier = std::ranges::find(before, flight.rank, &Flight::rank);
    if (earlier == before.end()) continue;
    std::erase_if(flight.operations, [&](const FlightOperation& operation) {
      return operation.is_under_way() && !was_under_way(operation, *earlier);
    });
    std::erase_if(flight.names, [&](const FlightName& name) {
      return !name.end && !was_in_flight(name, *earlier);
    });
  }
}

}  // namespace peal::observe
