// Who descends from a process, and how to leave none of them behind. Called by the guard, and by
// the launcher when its guard is lost.
#pragma once

#include <sys/types.h>

#include <vector>

#include "peal/base/clock.h"

namespace peal::launch {

/// While it lives, this process becomes the parent of every orphan among its descendants
/// (PR_SET_CHILD_SUBREAPER), so nobody gets away from it by a double fork or a session of its own.
class OrphanAdoption final {
 public:
  OrphanAdoption();
  ~OrphanAdoption();
  OrphanAdoption(const OrphanAdoption&) = delete;
  OrphanAdoption& operator=(const OrphanAdoption&) = delete;

 private:
  int before_ = 0;
};

/// All children of `root`, their children, and so on, zombies included. What is started while this
/// looks may be missed: ask again until there are none.
/// Cost: reads /proc/*/stat of the whole machine.
std::vector<pid_t> descendants_of(pid_t root);

/// Kills and reaps the descendants of this process until there are none. Returns how many are left
/// at the deadline: processes that hang in the kernel.
int kill_descendants(Deadline deadline);

}  // namespace peal::launch
