// The state that the parts of a ProcessGroup share, and how a call becomes a request of the
// backend. Included only by their sources.
#pragma once

#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <vector>

#include "peal/base/guarded.h"
#include "peal/group/call.h"
#include "peal/group/process_group.h"
#include "peal/system/per_process.h"

namespace peal {

struct GroupState {
  GroupState(std::unique_ptr<Backend> b, GroupOptions o);

  /// Checks the arguments by `fill(call)`, and executes the operation.
  template <class Fill>
  Rank run(Timeout timeout, Fill&& fill) {
    Call call(rank, size, capabilities);
    fill(call);
    check_alive();
    return backend->run(call.request(), resolve(timeout));
  }

  template <class Fill>
  WorkPtr start(Timeout timeout, Fill&& fill) {
    Call call(rank, size, capabilities);
    fill(call);
    check_alive();
    return backend->start({&call.request(), 1}, resolve(timeout));
  }

  Timeout resolve(Timeout timeout) const {
    return timeout == kGroupTimeout ? options.timeout : timeout;
  }

  /// Whether an exception unwinds the stack that did not when the group was made.
  Departure departure() const noexcept {
    return std::uncaught_exceptions() > exceptions_before ? Departure::kByException
                                                          : Departure::kNormal;
  }

  /// Throws Error(usage) once the group has been destroyed, and in a forked child.
  void check_alive() const;

  /// The first call makes the object.
  StopRequests& noted_stop_requests();

  const OwnerProcess owner;
  std::unique_ptr<Backend> backend;
  // These belong to the backend and do not change.
  const Rank rank;
  const int size;
  const Capabilities& capabilities;
  GroupOptions options;
  const int exceptions_before = std::uncaught_exceptions();  // a destructor may have made the group
  std::atomic<bool> destroyed{false};
  /// How many groups were made of each list of ranks. The members of the list agree on the number.
  Guarded<std::map<std::vector<Rank>, int>> groups_made;
  Guarded<std::unique_ptr<StopRequests>> stop_requests;
};

}  // namespace peal
