// Groups and forks: which groups this process is in, and whether it is still the process that made
// them. Used by both extension modules, each of which has its own.
#pragma once

#include <string>

#include "peal/group/process_group.h"

namespace peal::python {

/// Counts the forks that lie between the first process and this one. Cost: a load.
int generation();

/// Remembers the group, for as long as it lives, for the functions below.
void enlist(const ProcessGroupPtr& group);

/// Tells the peers of all groups that this rank is about to end by an exception, which it threw.
void tell_all_of_exception(const std::string& what) noexcept;

/// Leaves all groups that are left when the interpreter ends: so that nothing of them, a thread
/// least of all, outlives it. Bounded by a second for each. In a forked process it does nothing.
void leave_all() noexcept;

}  // namespace peal::python
