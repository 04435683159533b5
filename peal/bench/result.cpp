#include "peal/bench/result.h"

#include <algorithm>

namespace peal::bench {

double algorithm_bandwidth(const Result& result) {
  return static_cast<double>(bytes_of(result.the_case).value) / result.time.median / 1000;
}

double bus_bandwidth(const Result& result) {
  return algorithm_bandwidth(result) * bus_factor(result.the_case.op, result.the_case.ranks);
}

void compare(std::vector<Result>& results, const std::vector<std::string>& floors) {
  const auto is_floor = [&](const Result& r) { return std::ranges::count(floors, r.backend) > 0; };
  std::optional<double> floor;
  for (const Result& result : results) {
    if (is_floor(result)) floor = std::min(floor.value_or(result.time.median), result.time.median);
  }
  for (Result& result : results) {
    if (floor) result.floor_fraction = *floor / result.time.median;
    for (const Result& other : results) {
      if (is_floor(other) || other.backend == result.backend || other.backend == "peal") continue;
      result.times_faster[other.backend] = other.time.median / result.time.median;
    }
  }
}

}  // namespace peal::bench
