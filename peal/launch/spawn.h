// Starts one rank's process. Called by the guard, once per rank.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "peal/launch/rank_process.h"

namespace peal::launch {

/// Where a rank's process is put. The descriptors stay the caller's.
struct Placement {
  int in = -1;
  int out = -1;
  int err = -1;
  pid_t group = 0;  // the process group to join; 0: one of its own
  sigset_t mask{};  // its signal mask
};

struct Spawned {
  pid_t pid = -1;
  int error = 0;  // errno of what failed; then there is no process
};

/// Returns when the program runs or could not be executed. The kernel kills the process should the
/// calling thread end before it. The caller's own descriptors 0 to 2 must be open, and all that the
/// rank should not inherit be marked close-on-exec.
Spawned spawn(const RankProcess& rank, const Placement& placement);

}  // namespace peal::launch
