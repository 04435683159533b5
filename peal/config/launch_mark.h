// Decides which launch the variables of a process belong to. `peal run` gives each rank PEAL_JOB,
// PEAL_FLIGHT_DIR, PEAL_INJECT and Horovod's names of its rank, and every process that a rank
// starts inherits them. A job inside a rank, such as a separate torchrun, must not use them. So
// `peal run` marks the environment with the rank and with the values: PEAL_LAUNCHED. Read by init,
// and by a `peal run` inside a rank.
#pragma once

#include <array>
#include <string>

#include "peal/base/units.h"
#include "peal/config/environment.h"

namespace peal {

inline constexpr const char* kLaunchMark = "PEAL_LAUNCHED";
/// Set for the only rank on a node of a submitted job: its RANK is also the number of a node.
inline constexpr const char* kNodeMark = "PEAL_NODE";

/// The variables by which Horovod's launcher, and `peal run`, tell a process its rank and its host.
inline constexpr std::array kHorovodPlace = {"HOROVOD_RANK",
                                             "HOROVOD_SIZE",
                                             "HOROVOD_LOCAL_RANK",
                                             "HOROVOD_LOCAL_SIZE",
                                             "HOROVOD_CROSS_RANK",
                                             "HOROVOD_CROSS_SIZE",
                                             "HOROVOD_HOSTNAME"};

/// The relation of a process to the launch that marked its environment.
enum class Relation : unsigned char {
  kRank,       // the marked rank, by the environment; or no mark exists
  kOtherRank,  // same launcher, but another rank or world size: a rank of an inner job that the
               // program has started
  kInnerJob,   // another launcher or peal.spawn has started the process
};

/// The mark of rank `rank` of `world_size`, for the values in `environment`.
std::string launch_mark(const Environment& environment, Rank rank, int world_size);

/// The relation by the mark in `environment`. A malformed mark counts as no mark.
Relation relation(const Environment& environment, Rank rank, int world_size);

/// Whether the variable still has the value that it had when the environment was marked. The
/// variables of kHorovodPlace count as one value.
bool is_inherited(const Environment& environment, const std::string& name);

/// `environment` for a process of this relation: without variables of the rank that still have the
/// marked value. Variables that an inner job has set stay. PEAL_JOB is removed only for kInnerJob,
/// since the ranks of an inner job of kind kOtherRank must agree on it.
Environment own_environment(const Environment& environment, Relation relation);

}  // namespace peal
