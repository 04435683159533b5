// Descriptors that a forked child does not get. A connection ends when its last descriptor is
// closed. If a child of a rank kept one, the peers would notice the end of the rank only when the
// child ends.
#pragma once

#include "peal/system/fd.h"

namespace peal {

/// Until the descriptor is closed, each forked child has a dead descriptor under its number, and
/// any use of it fails. The number stays in use: if code in the child closes it, the code closes no
/// other file.
/// Limits: a child of `_Fork`, of a bare clone(2) and of vfork(2) keeps its copy until it ends or
///   calls exec, which closes all descriptors of peal. So does a child that another thread forks
///   between the system call that makes a descriptor and this call. Numbers from 2^18 on are not
///   withheld.
/// Threads: any number at once.
/// Cost: a system call here, and one in the child of each fork.
void withhold_from_children(int fd) noexcept;

/// The same descriptor, withheld.
inline Fd withheld_from_children(Fd fd) noexcept {
  withhold_from_children(fd.get());
  return fd;
}

}  // namespace peal
