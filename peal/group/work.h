// A started operation, and what happens to its memory.
//
// An operation that succeeded does not touch its buffers any more. A failed operation does not
// touch plain memory any more either; its outputs hold any values. But peers of the same host work
// directly on memory of ProcessGroup::allocate, and on memory of register_memory. A peer learns of
// the failure a little later than this rank, and a stopped peer only when it continues. Until the
// peer's own call, or the peer itself, has ended, the peer may still read such a buffer and write
// into it. So after a failure, keep no important data in such memory until all ranks have passed
// the failure, for example until the first barrier of a new group. Registered memory is out of the
// peers' reach as soon as its registration has ended. It then holds what the peers have written
// until that moment, and nothing that they write later. Memory is never unmapped while a peer uses
// it, and memory of other groups is never touched.
#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "peal/base/clock.h"
#include "peal/base/units.h"

namespace peal {

/// Threads: any number at once.
class Work {
 public:
  virtual ~Work() = default;

  /// Waits until the operation succeeds. Throws its error if it fails. Throws Error(timeout) if it
  /// has not ended within `timeout` from now; the operation then continues. kGroupTimeout: waits
  /// until the operation's own timeout ends it. In a forked child: Error(usage), if the operation
  /// had not ended before the fork.
  virtual void wait(Timeout timeout = kGroupTimeout) = 0;

  /// Whether the operation has ended, with or without an error.
  virtual bool is_completed() const = 0;

  /// Calls `then`, which must not throw, when the operation has ended, with or without an error: at
  /// once if it has ended already, otherwise on a thread of the backend, or on the thread that ends
  /// the group.
  /// `then` may start operations and wait for them, and may release this Work. Callbacks of
  /// messages run one after another, so `then` must not wait for another of them. `then` must not
  /// end the group, nor wait for its end.
  /// Errors: resource (no thread for the call), usage (a forked child, as in `wait`); `then` is not
  ///   called in these cases.
  virtual void when_completed(std::function<void()> then) = 0;

  /// The error of the operation; null while it runs and after success.
  virtual std::exception_ptr exception() const = 0;

  /// For a receive from kAnySource: the rank of the group that sent the message. For other
  /// operations: the peer or root. Meaningful after completion.
  virtual Rank source() const = 0;
};

using WorkPtr = std::shared_ptr<Work>;

}  // namespace peal
