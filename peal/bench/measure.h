// Measures cases round by round, all backends in turn. Called by `peal bench`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "peal/bench/case.h"
#include "peal/bench/host_net.h"
#include "peal/bench/result.h"
#include "peal/bench/session.h"

namespace peal::bench {

/// A problem during the measurement: the backend, and a sentence.
struct Incident {
  enum class Kind : unsigned char {
    kMissing,  // the backend lacks the operation or type
    kWrong,    // a wrong result, which is not timed
    kLost,     // a worker died or hung; the backend takes no further part
  };
  Kind kind = Kind::kMissing;
  std::string backend;
  std::string text;
};

struct MeasureOptions {
  int rounds = 5;
  double seconds = 0.1;  // the approximate time of a backend for a case in a round
  Rewriting rewriting = Rewriting::kInputs;
  std::vector<std::string> floors = {"probe"};
  int hosts = 1;               // for the results
  Conditions conditions = {};  // for the results
  /// Whether a backend takes part in a case; empty: every backend takes part in every case.
  std::function<bool(const std::string& backend, const Case&)> takes_part = {};
  /// A backend is far behind if it takes more than this many times the time of the fastest one with
  /// the same memory. If it is far behind in the trials and in the first round, it gets no further
  /// rounds. 0: all backends get all rounds.
  double far_behind = 0;
  /// The algorithm of a backend for a case, for the results; "" if unknown.
  std::function<std::string(const std::string& backend, const Case&)> algorithm = {};
  /// The bytes that each host has sent so far; empty: traffic is not measured.
  std::function<std::vector<Traffic>()> traffic = {};
  /// Called with each problem, as soon as it is noticed.
  std::function<void(const Incident&)> incident = [](const Incident&) {};
};

/// Checks the result of every backend, and times the backends with right results. Each round runs
/// all of them in turn, and begins with another one. Up to 256 bytes, operations are timed in
/// batches of about 35 us; larger ones one by one.
std::vector<Result> measure(Session& session, const Case& c, const MeasureOptions& options);

/// The approximate number of seconds that `measure` takes for the case if no backend falls behind.
double expected_seconds(const Session& session, const Case& c, const MeasureOptions& options);

/// "gloo: wrong result of all_reduce of 64 B of f32 on 2 ranks, default memory, rank 1: index 7:
/// got 3, expected 5"
std::string describe(const Incident& incident);

}  // namespace peal::bench
