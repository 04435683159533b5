#include "peal/observe/transient_operations.h"

#include <algorithm>

namespace peal::observe {
namespace {

bool was_under_way(const FlightOperation& operation, const Flight& before) {
  return std::ranges::any_of(before.operations, [&](const FlightOperation& earlier) {
    return earlier.ordinal == operation.ordinal && earlier.is_under_way();
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
  }
}

}  // namespace peal::observe
