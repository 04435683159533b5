// Who descends from a process. Called by the guard, which leaves none of them behind.
#pragma once

#include <sys/types.h>

#include <vector>

namespace peal::launch {

/// All children of `root`, their children, and so on, zombies included. What is started while this
/// looks may be missed: ask again until there are none.
/// Cost: reads /proc/*/stat of the whole machine.
std::vector<pid_t> descendants_of(pid_t root);

}  // namespace peal::launch
