// Drills: jobs of which one rank is killed or frozen at any moment. A drill is a value made from a
// seed, so that a failure can be repeated. Run by drill_test.cpp.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "peal/base/units.h"

namespace peal::testing {

enum class Phase : unsigned char { kRendezvous, kOperation, kTeardown };
enum class Action : unsigned char {
  kKill,    // SIGKILL
  kFreeze,  // SIGSTOP, for good
  kPause,   // SIGSTOP, and SIGCONT before any rank's timeout
};

inline constexpr std::array kAllPhases = {Phase::kRendezvous, Phase::kOperation, Phase::kTeardown};
inline constexpr std::array kAllActions = {Action::kKill, Action::kFreeze, Action::kPause};

std::string name_of(Phase phase);
std::string name_of(Action action);

struct Drill {
  unsigned seed = 0;
  int ranks = 2;
  std::string transport = "shm";
  Phase phase = Phase::kOperation;
  Action action = Action::kKill;
  Rank target = 0;
  /// Between the beginning of the phase and the strike.
  std::chrono::microseconds delay{};
  /// The number of operations between meeting and leaving.
  int rounds = 0;

  friend bool operator==(const Drill&, const Drill&) = default;
};

Drill random_drill(unsigned seed);
/// "drill 17: 4 ranks over shm, rank 2 is killed in the operation phase after 1234 us"
std::string describe(const Drill& drill);

/// Convert a drill to words on a command line, and back. The number of the rank follows these
/// words.
std::vector<std::string> rank_arguments(const Drill& drill);
Drill drill_of(const std::vector<std::string>& arguments);

/// The result of a drill.
struct DrillResult {
  std::vector<std::string> complaints;        // empty if the drill succeeded
  std::chrono::nanoseconds slowest_notice{};  // of a kill, or of a timeout after its deadline
  int survivors_ended = 0;                    // by the error of the drill
  /// The target finished before the strike, or an operation before the strike was too slow.
  bool inconclusive = false;
};

DrillResult run(const Drill& drill);

}  // namespace peal::testing
