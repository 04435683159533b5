// An operation that was started and may not have ended yet; and what becomes of its memory.
//
// An operation that ended well has left every buffer. One that failed has left buffers of plain
// memory too, and outputs hold anything. But peers of the same host work straight on memory from
// ProcessGroup::allocate, and on the caller's own that he has given to register_memory; and a peer
// learns of the failure a little later than this rank (or, if the peer was stopped, when it goes
// on): until its own call has ended, or the peer has, it may still read such a buffer and write
// into it. So after a failure that memory must hold nothing that matters until all ranks have come
// past it, which a new group's first barrier tells. Registered memory is out of the peers' reach as
// soon as its registration has ended: it then holds what they have written until then, and nothing
// of what they still write. Neither is unmapped under a peer, and other groups' memory is never
// touched.
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

  /// Returns when the operation has ended well. Throws what it ended with; Error(timeout) if it has
  /// not ended within `timeout` from now (it goes on all the same). kGroupTimeout: until the
  /// operation's own timeout ends it.
  virtual void wait(Timeout timeout = kGroupTimeout) = 0;

  /// Whether it has ended, well or not.
  virtual bool is_completed() const = 0;

  /// Calls `then`, which throws nothing, when it has ended, well or not: at once if it has, else on
  /// a thread of the backend or on that which ends the group. There it may start more operations
  /// and wait for them, but what is called for messages is called one after the other: it must not
  /// wait for what another of those does. It may let go of this Work. It must not end the group,
  /// nor wait for its end. Errors: resource (no thread to call it on); then it is not called.
  virtual void when_completed(std::function<void()> then) = 0;

  /// What it ended with; null while it runs and after it ended well.
  virtual std::exception_ptr exception() const = 0;

  /// Who sent what a receive from kAnySource got: a rank of the group. Others: the peer or root.
  /// Meaningful when completed.
  virtual Rank source() const = 0;
};

using WorkPtr = std::shared_ptr<Work>;

}  // namespace peal
