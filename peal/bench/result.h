// The result of a measurement, as a value: made by `measure`, shown in tables and JSON lines.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "peal/bench/case.h"
#include "peal/bench/host_net.h"
#include "peal/bench/protocol.h"
#include "peal/bench/statistics.h"

namespace peal::bench {

/// The settings of a run that change its results, besides its cases.
struct Conditions {
  std::string rate = {};        // the sending limit of hosts (HostOptions); "": no limit
  std::string congestion = {};  // --congestion, else PEAL_CONGESTION; "": the system's default
  std::string algorithm = {};   // PEAL_ALGORITHM
  std::string tune = {};        // PEAL_TUNE, in the form of plan::to_text
  std::string stage = {};       // PEAL_STAGE, if it is not the default: "1 MiB"
  Rewriting rewriting = Rewriting::kInputs;
};

/// One case of one backend in one variant.
struct Result {
  Case the_case;
  std::string backend;
  std::string transport;
  std::string variant;  // "registered", "foreign", "plain", ...; "default" for a single variant
  int hosts = 1;
  Conditions conditions = {};
  std::string algorithm = {};           // the algorithm of peal; "" for other backends
  Summary time;                         // of one operation, in microseconds
  std::string note = {};                // the backend's version and settings
  std::optional<Traffic> traffic = {};  // of one operation: the maximum over the hosts
  std::optional<double> floor_fraction =
      {};  // ratio (statistics.h) of the floor's time to this one's
  std::map<std::string, double> times_faster = {};  // by peer: ratio of its time to this one's
};

/// S bytes (see bytes_of) over the median, in 10^9 bytes per second. 0 for a barrier.
double algorithm_bandwidth(const Result&);
/// algorithm_bandwidth * bus_factor
double bus_bandwidth(const Result&);

/// Sets floor_fraction and times_faster of the results of one case. Compares only results with the
/// same number of rounds. The floor is the fastest result of the backends in `floors`; peers are
/// all backends except peal and the floors.
void compare(std::vector<Result>& results, const std::vector<std::string>& floors);

}  // namespace peal::bench
