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
  for (Result& result : results) {
    for (const Result& other : results) {
      if (other.time.rounds != result.time.rounds) continue;
      const double against = ratio(other.time, result.time);
      if (is_floor(other)) {
        result.floor_fraction = std::min(result.floor_fraction.value_or(against), against);
      } else if (other.backend != result.backend && other.backend != "peal") {
        result.times_faster[other.backend] = against;
      }
    }
  }
}

}  // namespace peal::bench
