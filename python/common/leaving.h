// How groups end in a Python program: by its last reference, an exception, or the interpreter's
// end. Used by both extension modules, each of which has its own groups.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"

namespace peal::python {

/// Marks this thread, while it lives, as one of a backend that may run Python: to complete a
/// future, or to free what a Work has held.
class BackendThread {
 public:
  BackendThread();
  ~BackendThread();
  BackendThread(const BackendThread&) = delete;
  BackendThread& operator=(const BackendThread&) = delete;

 private:
  std::optional<int> before_;
};

/// For what waits until a group's threads have ended. Errors: usage, on one that may be such a
/// thread: where an operation ends, as in the callback of a future.
void check_may_wait_for_threads(const char* operation);

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

/// Leaves the group on the way to the process's end, which this is not to change: waits a second at
/// most for what is under way, and does not say how that ended. Callbacks that have begun it waits
/// for until they return. On a BackendThread, for which it would wait, it leaves all that to the
/// last reference.
void leave_in_haste(ProcessGroup& group, const EndWork& end_work = nullptr) noexcept;

/// While it lives, this thread leaves groups in order, and `leave_all` waits for it: the thread may
/// be a daemon. Make it after releasing the GIL. If the interpreter ends meanwhile, the destructor
/// does not return: a thread that takes the GIL of an ending interpreter would be unwound through
/// C++, which ends the process.
class LeavingInOrder {
 public:
  LeavingInOrder();
  ~LeavingInOrder();
  LeavingInOrder(const LeavingInOrder&) = delete;
  LeavingInOrder& operator=(const LeavingInOrder&) = delete;

  /// Whether the ending interpreter has waited a second for such threads.
  static bool is_cut_off();

 private:
  bool before_;
};

/// For InitOptions::interrupt. Does what check_signals does. On a thread that leaves in order, also
/// throws Error(peer_lost) when the ending interpreter has waited a second for the thread.
void check_interrupts();

/// Leaves all remaining groups when the interpreter ends. Waits for the threads that leave groups
/// (LeavingInOrder) and for the groups that `let_go` is about to end. So no part of a group, such
/// as a thread, outlives the interpreter. Operations in flight get a second for each group. A
/// callback that has begun is waited for until it returns. The groups of the parent process are
/// ignored in a forked child.
void leave_all() noexcept;

}  // namespace peal::python
