// Data inside its mutex: the data can only be accessed while the mutex is held.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "peal/base/clock.h"

namespace peal {

/// Threads: any number at once.
template <class T>
class Guarded {
 public:
  template <class... Args>
  explicit Guarded(Args&&... args) : value_(std::forward<Args>(args)...) {}

  /// Calls `use(value)` while the mutex is held, and returns its result.
  template <class Use>
  decltype(auto) with(Use&& use) {
    const std::lock_guard lock(mutex_);
    return std::forward<Use>(use)(value_);
  }

  /// Like `with`, and wakes all threads in `wait`. They are woken while the mutex is still held: a
  /// thread that sees the change may destroy this object.
  template <class Use>
  decltype(auto) update(Use&& use) {
    struct Notify {
      std::condition_variable& changed;
      ~Notify() { changed.notify_all(); }
    };
    const std::lock_guard lock(mutex_);
    const Notify notify{changed_};
    return std::forward<Use>(use)(value_);
  }

  /// Waits until `ready(value)` is true or the deadline passes. If `ready` is true, calls
  /// `use(value)`. Returns whether `ready` was true.
  template <class Ready, class Use>
  bool wait(Deadline deadline, Ready&& ready, Use&& use) {
    std::unique_lock lock(mutex_);
    const auto is_ready = [&] { return ready(std::as_const(value_)); };
    if (deadline.at() == TimePoint::max()) {
      changed_.wait(lock, is_ready);
    } else if (!changed_.wait_until(lock, deadline.at(), is_ready)) {
      return false;
    }
    use(value_);
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  T value_;
};

}  // namespace peal
