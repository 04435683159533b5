// Whose the variables of a launch are. `peal run` gives each rank PEAL_JOB, PEAL_FLIGHT_DIR and
// PEAL_INJECT, and every process that a rank starts inherits them. A job inside a rank, such as a
// torchrun of its own, must not take them for its own. So `peal run` marks the environment with the
// rank and with the values: PEAL_LAUNCHED. Read by init, and by a `peal run` inside a rank.
#pragma once

#include <string>

#include "peal/base/environment.h"
#include "peal/base/units.h"

namespace peal {

inline constexpr const char* kLaunchMark = "PEAL_LAUNCHED";

/// What a process of a launch is to it.
enum class Kinship : unsigned char {
  kRank,       // the marked rank, as far as the environment says; or there is no mark
  kOtherRank,  // of the same launcher, with another rank or world size: ranks of an inner job that
               // the program has started itself
  kInnerJob,   // another launcher, or peal.spawn, has started it
};

/// The mark of rank `rank` of `world_size`, for the values in `environment`.
std::string launch_mark(const Environment& environment, Rank rank, int world_size);

/// By the mark in `environment`, if there is one. A mark that cannot be read does not count.
Kinship kinship(const Environment& environment, Rank rank, int world_size);

/// Whether the variable has the value that it had when the environment was marked.
bool is_inherited(const Environment& environment, const std::string& name);

/// `environment` as a process of this kinship may take it: without the variables of the rank that
/// are still as the rank has them. What an inner job has set itself stays. PEAL_JOB goes for
/// kInnerJob only: the ranks of an inner job must agree on it.
Environment own_environment(const Environment& environment, Kinship kinship);

}  // namespace peal
