// What was measured, as a value: made by `measure`, shown by tables, JSON lines and plots.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "peal/bench/case.h"
#include "peal/bench/host_net.h"
#include "peal/bench/statistics.h"

namespace peal::bench {

/// One case done by one backend in one way.
struct Result {
  Case the_case;
  std::string backend;
  std::string transport;
  std::string variant;  // "registered", "foreign", "plain", ...; "default" where there is one way
  int hosts = 1;
  Summary time;                               // of one operation, in microseconds
  std::string note = {};                      // what the backend said of itself
  std::optional<Traffic> traffic = {};        // of one operation: the most that a host has sent
  std::optional<double> floor_fraction = {};  // the floor's median over this one's
  std::map<std::string, double> times_faster = {};  // by peer: its median over this one's
};

/// S bytes (see bytes_of) over the median, in 10^9 bytes per second. 0 for a barrier.
double algorithm_bandwidth(const Result&);
/// algorithm_bandwidth * bus_factor
double bus_bandwidth(const Result&);

/// Fills in floor_fraction and times_faster of the results of one case. The floor is the fastest of
/// the backends named in `floors`; peers are those that are neither peal nor floors.
void compare(std::vector<Result>& results, const std::vector<std::string>& floors);

}  // namespace peal::bench
