// Finds and kills the descendants of a process. Called by the guard, and by the launcher when its
// guard is lost.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

#include "peal/base/clock.h"

namespace peal::launch {

/// While this object lives, this process becomes the parent of every orphan among its descendants
/// (PR_SET_CHILD_SUBREAPER). So no process escapes by a double fork or a new session.
class OrphanAdoption final {
 public:
  OrphanAdoption();
  ~OrphanAdoption();
  OrphanAdoption(const OrphanAdoption&) = delete;
  OrphanAdoption& operator=(const OrphanAdoption&) = delete;

 private:
  int before_ = 0;
};

/// All children of `root`, their children, and so on, including zombies. May miss processes that
/// are started during the call: repeat the call until it returns none.
/// Cost: reads /proc/*/stat of the whole machine.
std::vector<pid_t> descendants_of(pid_t root);

/// Kills and reaps the descendants of this process, except the processes in `spared` and their
/// descendants, until all have ended. Returns how many remain at the deadline: processes that hang
/// in the kernel.
int kill_descendants(Deadline deadline, const std::set<pid_t>& spared = {});

}  // namespace peal::launch
