// An operation that was started and may not have ended yet.
#pragma once

#include <exception>
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

  /// What it ended with; null while it runs and after it ended well.
  virtual std::exception_ptr exception() const = 0;

  /// Who sent what a receive from kAnySource got: a rank of the group. Others: the peer or root.
  /// Meaningful when completed.
  virtual Rank source() const = 0;
};

using WorkPtr = std::shared_ptr<Work>;

}  // namespace peal
