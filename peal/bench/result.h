// What was measured, as a value: made by `measure`, shown by tables, JSON lines and plots.
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

/// What a run was told that changes what it finds, beside its cases.
struct Conditions {
  std::string rate = {};        // that hosts send at most (HostOptions); "": as much as they can
  std::string congestion = {};  // --congestion, else PEAL_CONGESTION; "": as the system has it
  std::string algorithm = {};   // PEAL_ALGORITHM
  std::string tune = {};        // PEAL_TUNE, as plan::to_text writes it
  std::string stage = {};       // PEAL_STAGE, where it is not what it is by itself: "1 MiB"
  Rewriting rewriting = Rewriting::kInputs;
};

/// One case done by one backend in one way.
struct Result {
  Case the_case;
  std::string backend;
  std::string transport;
  std::string variant;  // "registered", "foreign", "plain", ...; "default" where there is one way
  int hosts = 1;
  Conditions conditions = {};
  std::string algorithm = {};           // that peal did it by; "" for others
  Summary time;                         // of one operation, in microseconds
  std::string note = {};                // what the backend said of itself
  std::optional<Traffic> traffic = {};  // of one operation: the most that a host has sent
  std::optional<double> floor_fraction =
      {};  // ratio (statistics.h) of the floor's time to this one's
  std::map<std::string, double> times_faster = {};  // by peer: ratio of its time to this one's
};

/// S bytes (see bytes_of) over the median, in 10^9 bytes per second. 0 for a barrier.
double algorithm_bandwidth(const Result&);
/// algorithm_bandwidth * bus_factor
double bus_bandwidth(const Result&);

/// Fills in floor_fraction and times_faster of the results of one case, among those of as many
/// rounds. The floor is what is the fastest beside this one of the backends named in `floors`;
/// peers are those that are neither peal nor floors.
void compare(std::vector<Result>& results, const std::vector<std::string>& floors);

}  // namespace peal::bench
