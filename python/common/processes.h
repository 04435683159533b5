// Groups and forks: which groups this process is in, and whether it is still the process that made
// them. Used by both extension modules, each of which has its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"

namespace peal::python {

/// Counts the forks that lie between the first process and this one. Cost: a load.
int generation();

/// Errors: usage, where this process was forked from the one that is in the group, with what to
/// call instead.
void check_not_forked(int generation_of_group, const std::string& group, const char* instead);

/// Marks this thread, while it lives, as one of a backend that may run Python: to complete a
/// future, or to free what a Work has held.
class BackendThread {
 public:
  BackendThread();
  ~BackendThread();
  BackendThread(const BackendThread&) = delete;
  BackendThread& operator=(const BackendThread&) = delete;

 private:
  bool before_;
};

/// Lets go of a group, or of what has threads as one: if it is the last reference, waits for those
/// threads, without the GIL; where this is one of them, on another thread. In a forked process it
/// only forgets it: its threads are not here, and its connections are not this one's to close.
void let_go(std::shared_ptr<const void> held, int generation_of_group);

/// Ends what works on a group with threads of its own, and those threads: what is under way has
/// until the deadline.
using EndWork = std::function<void(Deadline)>;

/// Remembers the group, for as long as it lives, for the functions below, and how to end what works
/// on it, if anything does.
void enlist(const ProcessGroupPtr& group, EndWork end_work = nullptr);

/// Tells the peers of all groups that this rank is about to end by an exception, which it threw.
void tell_all_of_exception(const std::string& what) noexcept;

/// Leaves the group on the way to the process's end, which nothing is to hold up or to change:
/// waits a second at most for what is under way, and says nothing of what that was.
void leave_in_haste(ProcessGroup& group, const EndWork& end_work = nullptr) noexcept;

/// Leaves all groups that are left when the interpreter ends, and waits for those that `let_go` is
/// about to end: so that nothing of them, a thread least of all, outlives it. Bounded by a second
/// for each, and two for the latter. In a forked process it does nothing.
void leave_all() noexcept;

}  // namespace peal::python
