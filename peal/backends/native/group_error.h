// The first error of a group. It ends the group: each blocked and each later call of the group
// throws it. Shared by the loops and the threads that drive them.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <utility>

#include "peal/base/error.h"
#include "peal/base/guarded.h"

namespace peal::native {

/// Threads: any number at once.
class GroupError {
 public:
  /// Calls `wake` once, after the first error, to wake all sleeping threads.
  explicit GroupError(std::function<void()> wake) : wake_(std::move(wake)) {}

  /// Stores the error, unless there is one already.
  void set(const Error& cause) {
    const bool first = cause_.with([&](std::optional<Error>& known) {
      if (known) return false;
      known = cause;
      is_set_.store(true, std::memory_order_release);
      return true;
    });
    if (first) wake_();
  }

  /// Cheap enough for a polling loop.
  bool is_set() const noexcept { return is_set_.load(std::memory_order_acquire); }

  /// The error. Call only if is_set().
  Error cause() const {
    return cause_.with([](const std::optional<Error>& known) { return *known; });
  }

  /// Throws the cause if there is one.
  void check() const {
    if (is_set()) throw cause();
  }

 private:
  mutable Guarded<std::optional<Error>> cause_;
  std::atomic<bool> is_set_{false};
  const std::function<void()> wake_;
};

}  // namespace peal::native
