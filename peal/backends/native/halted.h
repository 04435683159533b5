// Who of a group does not run when an operation has come to its deadline: whom an operation waits
// for may itself wait for another.
#pragma once

#include <span>
#include <string>

#include "peal/transport/transport.h"

namespace peal::native {

/// ". Meanwhile rank 0 (pid 7 on b, over shm) stands still", for every rank but `self` and
/// those of `known` that is stopped, silent, unreachable or has ended; the first few, where there
/// are many. Empty if all run. Cost: a look into /proc for each rank of the host.
std::string describe_halted(const transport::Transport& transport,
                            Rank self,
                            int ranks,
                            std::span<const Rank> known);

}  // namespace peal::native
