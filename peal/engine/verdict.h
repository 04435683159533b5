// The first thing that went wrong in a group. It ends everything: each blocked and each later call
// of the group throws it. Shared by the engine's parts and the threads that drive them.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <utility>

#include "peal/base/error.h"
#include "peal/base/guarded.h"

namespace peal::engine {

/// Threads: any number at once.
class Verdict {
 public:
  /// Calls `wake` once, when the verdict is reached: it shakes awake whoever sleeps.
  explicit Verdict(std::function<void()> wake) : wake_(std::move(wake)) {}

  /// The first cause wins.
  void reach(const Error& cause) {
    const bool first = cause_.with([&](std::optional<Error>& known) {
      if (known) return false;
      known = cause;
      reached_.store(true, std::memory_order_release);
      return true;
    });
    if (first) wake_();
  }

  /// Cheap enough for a polling loop.
  bool reached() const noexcept { return reached_.load(std::memory_order_acquire); }

  /// Only when reached.
  Error cause() const {
    return cause_.with([](const std::optional<Error>& known) { return *known; });
  }

  /// Throws the cause if there is one.
  void check() const {
    if (reached()) throw cause();
  }

 private:
  mutable Guarded<std::optional<Error>> cause_;
  std::atomic<bool> reached_{false};
  const std::function<void()> wake_;
};

}  // namespace peal::engine
