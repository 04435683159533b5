// Starts one rank's process. Called by the guard, once per rank.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "peal/launch/rank_command.h"

namespace peal::launch {

/// The descriptors and the process group of a rank. The caller keeps the descriptors.
struct Placement {
  int in = -1;
  int out = -1;
  int err = -1;
  pid_t group = 0;  // the process group to join; 0: a new one
  sigset_t mask{};  // the signal mask of the rank
};

struct Spawned {
  pid_t pid = -1;
  int error = 0;  // errno of the failure; then no process exists
};

/// Returns when the program runs or could not be executed. The kernel kills the process if the
/// calling thread ends first. The caller's descriptors 0 to 2 must be open. All descriptors that
/// the rank must not inherit must be marked close-on-exec.
Spawned spawn(const RankCommand& rank, const Placement& placement);

}  // namespace peal::launch
