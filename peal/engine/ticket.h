// The end of one operation, which somebody may wait for: the engine's side of a Work.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/units.h"

namespace peal::engine {

/// Threads: any number at once. Ends once; later ends are ignored.
class Ticket {
 public:
  /// `what` names the operation in errors: "recv of 10 f32 from rank 1".
  Ticket(std::string what, Timeout timeout)
      : what_(std::move(what)), timeout_(timeout), deadline_(Deadline::after(timeout)) {}

  const std::string& what() const { return what_; }
  Timeout timeout() const { return timeout_; }
  Deadline deadline() const { return deadline_; }

  void succeed(Rank source) { end(source, nullptr); }
  void fail(const Error& error) { end(kAnySource, std::make_exception_ptr(error)); }

  bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  /// Null while it runs and after it went well.
  std::exception_ptr exception() const { return ended() ? exception_ : nullptr; }
  /// When ended well.
  Rank source() const { return ended() ? source_ : kAnySource; }

  /// Returns whether it ended before the deadline.
  bool wait(Deadline deadline) {
    if (ended()) return true;
    std::unique_lock lock(mutex_);
    const auto is_over = [this] { return ended(); };
    if (deadline.at() == TimePoint::max()) {
      changed_.wait(lock, is_over);
      return true;
    }
    return changed_.wait_until(lock, deadline.at(), is_over);
  }

 private:
  void end(Rank source, std::exception_ptr exception) {
    {
      const std::lock_guard lock(mutex_);
      if (ended()) return;
      source_ = source;
      exception_ = std::move(exception);
      ended_.store(true, std::memory_order_release);
    }
    changed_.notify_all();
  }

  const std::string what_;
  const Timeout timeout_;
  const Deadline deadline_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> ended_{false};
  Rank source_ = kAnySource;
  std::exception_ptr exception_;
};

using TicketPtr = std::shared_ptr<Ticket>;

}  // namespace peal::engine
