// How groups end in a Python program: by the last reference, by an exception, or at the end of the
// interpreter. The extension modules use this file, each for its groups.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"

namespace peal::python {

/// While this object lives, marks this thread as a backend thread that may run Python: to complete
/// a future, or to free objects that a Work has kept.
class BackendThread {
 public:
  BackendThread();
  ~BackendThread();
  BackendThread(const BackendThread&) = delete;
  BackendThread& operator=(const BackendThread&) = delete;

 private:
  std::optional<int> before_;
};

/// Call before waiting for the end of a group's threads.
/// Errors: usage on a backend thread, for example in the callback of a future, because such a
///   thread would wait for itself.
void check_may_wait_for_threads(const char* operation);

/// Releases a group, or another object with threads. The release of the last reference waits for
/// these threads, without the GIL; on a backend thread, another thread waits instead. In a forked
/// process, leaks the object: the threads do not exist there, and the parent's connections must
/// stay open.
void release_object(std::shared_ptr<const void> held, int generation_of_group);

/// Ends an object that uses a group on other threads, and these threads. Operations in flight get
/// until the deadline.
using EndWork = std::function<void(Deadline)>;

/// Registers the group for the functions below, as long as the group lives. `end_work` ends the
/// object that uses the group, if such an object exists.
void enlist(const ProcessGroupPtr& group, EndWork end_work = nullptr);

/// Notifies the peers of all groups that this rank is about to end by an exception with the text
/// `what`.
void tell_all_of_exception(const std::string& what) noexcept;

/// Leaves the group while the process ends. Waits at most one second for operations in flight and
/// ignores their errors, so that the process ends as it would without the group. Waits until
/// callbacks that have begun return. On a BackendThread, does nothing: the thread would wait for
/// itself, and the release of the last reference leaves the group.
void leave_in_haste(ProcessGroup& group, const EndWork& end_work = nullptr) noexcept;

/// While this object lives, this thread leaves groups without an error, and `leave_all` waits for
/// the thread, which may be a daemon. Construct it after releasing the GIL. The destructor does not
/// return if the interpreter ends meanwhile: a thread that takes the GIL of an ending interpreter
/// would be unwound through C++, which ends the process.
class NormalLeave {
 public:
  NormalLeave();
  ~NormalLeave();
  NormalLeave(const NormalLeave&) = delete;
  NormalLeave& operator=(const NormalLeave&) = delete;

  /// Whether the ending interpreter has waited a second for such threads.
  static bool is_cut_off();

 private:
  bool before_;
};

/// For InitOptions::interrupt. As check_signals. On a thread that leaves without an error, also
/// throws Error(aborted) when the ending interpreter has waited a second for the thread.
void check_interrupts();

/// Leaves all remaining groups when the interpreter ends. Waits for the threads that leave groups
/// (NormalLeave) and for the groups that `release_object` is about to end. So no part of a group,
/// such as a thread, outlives the interpreter. Operations in flight get one second for each group.
/// Waits until callbacks that have begun return. A forked child ignores the groups of its parent.
void leave_all() noexcept;

}  // namespace peal::python
