// Which ranks of a group do not run when an operation times out. A rank that the operation waits
// for may itself wait for another rank.
#pragma once

#include <span>
#include <string>

#include "peal/transport/transport.h"

namespace peal::native {

/// Describes every rank that is stopped, silent, unreachable or has ended, except `self` and
/// `known`: ". Meanwhile rank 0 (pid 7 on b, over shm) is stopped (by a signal or a debugger)".
/// Names only the first few of many. Empty if all run.
/// Cost: a look into /proc for each rank of the host.
std::string describe_stopped_peers(const transport::Transport& transport,
                                   Rank self,
                                   int ranks,
                                   std::span<const Rank> known);

}  // namespace peal::native
