// The end of one operation, which somebody may wait for: the engine's side of a Work.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/base/units.h"

namespace peal::engine {

/// Threads: any number at once. Ends once; later ends are ignored.
class Ticket {
 public:
  /// `what` names the operation in errors: "recv of 10 f32 from rank 1".
  Ticket(std::string what, Timeout timeout)
      : what_([text = std::move(what)] { return text; }),
        timeout_(timeout),
        deadline_(Deadline::after(timeout)) {}
  /// For an operation that may end before anyone asks for its name or the time: both cost more than
  /// a small message. Its time runs from `reckon` on.
  Ticket(std::function<std::string()> what, Timeout timeout)
      : what_(std::move(what)), timeout_(timeout), deadline_(TimePoint::max()) {}

  std::string what() const { return what_(); }
  Timeout timeout() const { return timeout_; }
  Deadline deadline() const { return deadline_; }
  /// The deadline, from now if none was reckoned before. Not while others ask for it.
  Deadline reckon() {
    if (deadline_.at() == TimePoint::max()) deadline_ = Deadline::after(timeout_);
    return deadline_;
  }

  void succeed(Rank source) { end({source, std::nullopt}); }
  void fail(const Error& error) { end({kAnySource, error}); }

  bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  /// Null while it runs and after it went well. Each call makes one of its own: exceptions that
  /// threads share are a race for whoever looks at them.
  std::exception_ptr exception() const {
    return end_.with([](const End& end) {
      return end.failure ? std::make_exception_ptr(Error(*end.failure)) : nullptr;
    });
  }
  /// When ended: throws what it ended with, or returns who was at the other end.
  Rank result() const {
    if (const Rank source = source_.load(std::memory_order_relaxed); source != kAnySource) {
      return source;
    }
    return end_.with([](const End& end) {
      if (end.failure) throw Error(*end.failure);
      return end.source;
    });
  }
  /// When ended well; else kAnySource.
  Rank source() const {
    return end_.with([](const End& end) { return end.source; });
  }

  /// Returns whether it ended before the deadline.
  bool wait(Deadline deadline) const {
    const auto over = [this](const End&) { return ended(); };
    return ended() || end_.wait(deadline, over, [](const End&) {});
  }

 private:
  struct End {
    Rank source = kAnySource;
    std::optional<Error> failure;
  };

  void end(End how) {
    end_.update([&](End& end) {
      if (ended()) return;
      end = std::move(how);
      source_.store(end.source, std::memory_order_relaxed);
      ended_.store(true, std::memory_order_release);
    });
  }

  const std::function<std::string()> what_;
  const Timeout timeout_;
  Deadline deadline_;
  mutable Guarded<End> end_;
  // Spare those who poll, and those who know that it has ended well, the mutex:
  std::atomic<bool> ended_{false};
  std::atomic<Rank> source_{kAnySource};
};

using TicketPtr = std::shared_ptr<Ticket>;

}  // namespace peal::engine
