// The first thing that went wrong in a group. It ends everything: each blocked and each later call
// of the group throws it. Shared by the engine's parts and the threads that drive them.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "peal/base/error.h"

namespace peal::engine {

/// Threads: any number at once.
class Verdict {
 public:
  /// Calls `wake` once, when the verdict is reached: it shakes awake whoever sleeps. Before any
  /// threads.
  void on_reached(std::function<void()> wake) { wake_.push_back(std::move(wake)); }

  /// The first cause wins; returns whether it was this one.
  bool reach(const Error& cause) {
    {
      const std::lock_guard lock(mutex_);
      if (cause_) return false;
      cause_ = cause;
      reached_.store(true, std::memory_order_release);
    }
    for (const auto& wake : wake_) wake();
    return true;
  }

  /// Cheap enough for a polling loop.
  bool reached() const noexcept { return reached_.load(std::memory_order_acquire); }

  /// The cause; only when reached.
  const Error& cause() const { return *cause_; }

  /// Throws the cause if there is one.
  void check() const {
    if (reached()) throw Error(cause());
  }

 private:
  std::mutex mutex_;
  std::optional<Error> cause_;  // written once, before reached_
  std::atomic<bool> reached_{false};
  std::vector<std::function<void()>> wake_;
};

}  // namespace peal::engine
