// The measuring: case by case and round by round, all backends in turn. Called by `peal bench`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "peal/bench/case.h"
#include "peal/bench/host_net.h"
#include "peal/bench/result.h"
#include "peal/bench/session.h"

namespace peal::bench {

/// What went wrong on the way: the backend, and a sentence.
struct Incident {
  enum class Kind : unsigned char {
    kMissing,  // the backend has no such operation or type
    kWrong,    // a wrong result, which was not timed
    kLost,     // a worker died or hung; the backend takes part no more
  };
  Kind kind = Kind::kMissing;
  std::string backend;
  std::string text;
};

struct MeasureOptions {
  int rounds = 5;
  double seconds = 0.1;  // about how long a backend has for a case in a round
  Rewriting rewriting = Rewriting::kInputs;
  std::vector<std::string> floors = {"probe"};
  int hosts = 1;               // for the results
  Conditions conditions = {};  // for the results
  /// Whether a backend does a case at all; empty: each does each.
  std::function<bool(const std::string& backend, const Case&)> takes_part = {};
  /// Who takes more than so many times what the fastest takes with the same memory, both while it
  /// is tried out and in the first round, has no further rounds. 0: all have all.
  double far_behind = 0;
  /// By which of its algorithms a backend does a case, for the results; "" where it does not say.
  std::function<std::string(const std::string& backend, const Case&)> algorithm = {};
  /// What each host has sent by now; empty: it is not asked for.
  std::function<std::vector<Traffic>()> traffic = {};
  /// Called with what goes wrong, as soon as it is noticed.
  std::function<void(const Incident&)> incident = [](const Incident&) {};
};

/// Checks that every backend does the case right, and times those that do: in each round each one
/// in turn, another one first each time.
/// Up to 256 bytes operations are timed in batches of some 35 us; beyond, one by one.
std::vector<Result> measure(Session& session, const Case& c, const MeasureOptions& options);

/// About how many seconds `measure` takes for the case if nobody falls behind.
double expected_seconds(const Session& session, const Case& c, const MeasureOptions& options);

/// "gloo: wrong result of all_reduce of 64 B of f32 on 2 ranks, default memory, rank 1: index 7:
/// got 3, expected 5"
std::string describe(const Incident& incident);

}  // namespace peal::bench
