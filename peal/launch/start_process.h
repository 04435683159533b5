// Starts the process of one rank. Called by the guard, once per rank.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <vector>

#include "peal/launch/rank_command.h"

namespace peal::launch {

/// A function that the process of a rank runs instead of a program. Its result is the exit code. It
/// must not throw. No destructor and no exit handler runs after it.
using RankFunction = std::function<int(Rank)>;

/// The descriptors and the process group of a rank. The caller keeps the descriptors.
struct Placement {
  int in = -1;
  int out = -1;
  int err = -1;
  pid_t group = 0;               // the process group to join; 0: a new one
  sigset_t mask{};               // the signal mask of the rank
  int parent_death = SIGKILL;    // the signal to the rank when its parent ends; 0: none
  int inherited = -1;            // one more descriptor that the program inherits; -1: none
  std::vector<int> closed = {};  // closed before a function runs; a program closes them by exec
};

struct StartedProcess {
  pid_t pid = -1;
  int error = 0;  // errno of the failure; then no process exists
};

/// Returns when the program runs or could not be executed. With a `function`, the process is a fork
/// of the caller and runs the function with the rank's environment. The kernel kills the process if
/// the calling thread ends first (`placement.parent_death`). The caller's descriptors 0 to 2 must
/// be open. All descriptors that a program must not inherit must be marked close-on-exec.
/// Threads: any; with a `function` the caller has one thread, because a fork copies one thread.
StartedProcess start_process(const RankCommand& rank,
                             const Placement& placement,
                             const RankFunction& function = {});

/// Starts the command `rank.after_end`. It outlives the caller, and no signal but SIGKILL ends it.
/// `in`: its stdin. The descriptor `null` is /dev/null, for its output.
StartedProcess start_after_end(const RankCommand& rank, int in, int null);

}  // namespace peal::launch
