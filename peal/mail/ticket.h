// The completion of one operation, for callers that wait for it. The mailbox ends the tickets of
// messages, the native backend those of asynchronous collectives.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/base/units.h"
#include "peal/observe/group_recorder.h"

namespace peal::mail {

/// Threads: any number at once. The first end counts; later ends are ignored.
class Ticket {
 public:
  /// `what` names the operation in errors, as "recv of 10 f32 from rank 1". `peer` is the other
  /// rank.
  Ticket(std::string what, Timeout timeout, Rank peer = kAnySource)
      : what_([text = std::move(what)] { return text; }),
        timeout_(timeout),
        peer_(peer),
        deadline_(Deadline::after(timeout)) {}
  /// For an operation that usually ends before a caller asks for its name or deadline, because both
  /// cost more than a small message. The timeout starts with `start_timeout`.
  Ticket(std::function<std::string()> what, Timeout timeout, Rank peer = kAnySource)
      : what_(std::move(what)), timeout_(timeout), peer_(peer), deadline_(TimePoint::max()) {}

  std::string what() const { return what_(); }
  Timeout timeout() const { return timeout_; }
  /// kAnySource if the operation is not with a particular rank.
  Rank peer() const { return peer_; }
  Deadline deadline() const { return deadline_; }
  /// The deadline. The first call starts the timeout. Must not run concurrently with `deadline`.
  Deadline start_timeout() {
    if (deadline_.at() == TimePoint::max()) deadline_ = Deadline::after(timeout_);
    return deadline_;
  }

  /// Records the end of the operation at `place`. Call before the operation can end. The recorder
  /// must outlive the thread that ends the operation.
  void record(const observe::GroupRecorder& recorder, const observe::GroupRecorder::Slot& place) {
    recorder_ = &recorder;
    place_ = place;
  }

  /// Calls `then`, which must not throw, when the operation has ended: at once if it has ended
  /// already, otherwise on the thread that ends it, while that thread holds its locks.
  void when_ended(std::function<void()> then) {
    late_.with([&](Late& late) { late.watchers.push_back(std::move(then)); });
    watched_.store(
        true);  // before ended() is read, because the ending thread reads in reverse order
    if (ended()) call_watchers();
  }

  /// Cost: one atomic exchange if no thread sleeps or watches.
  void succeed(Rank source) {
    set_success(source);
    tell_watchers();
  }
  void fail(const Error& error) {
    set_failure(error);
    tell_watchers();
  }
  /// The same, without calling the watchers. The caller then calls tell_watchers().
  void set_success(Rank source) {
    Rank running = kRunning;
    if (!end_.compare_exchange_strong(running, source)) return;
    if (recorder_ != nullptr) recorder_->end(place_, observe::GroupRecorder::Ending::kWell);
    if (sleepers_.load() > 0) late_.update([](const auto&) {});  // wakes them
  }
  void set_failure(const Error& error) {
    late_.update([&](Late& late) {
      if (ended()) return;
      late.failure = error;
      Rank running = kRunning;
      if (!end_.compare_exchange_strong(running, kFailed)) return late.failure.reset();
      if (recorder_ != nullptr) recorder_->end(place_, observe::GroupRecorder::Ending::kFailed);
    });
  }
  /// After the end: whether watchers must be called. Later watchers are called by when_ended.
  bool is_watched() const noexcept { return watched_.load(); }
  void tell_watchers() {
    if (is_watched()) call_watchers();
  }

  bool ended() const noexcept { return end_.load() != kRunning; }
  /// Null while the operation runs and after success. Each call makes a new exception, because
  /// threads that read a shared exception would race.
  std::exception_ptr exception() const {
    if (end_.load() != kFailed) return nullptr;
    return late_.with(
        [](const Late& late) { return std::make_exception_ptr(Error(*late.failure)); });
  }
  /// After the end: throws the error, or returns the rank at the other end.
  Rank result() const {
    if (const Rank end = end_.load(); end != kFailed) return end;
    throw late_.with([](const Late& late) { return *late.failure; });
  }
  /// After success, the rank at the other end; otherwise kAnySource.
  Rank source() const { return std::max(end_.load(), kAnySource); }

  /// Waits for the end of the operation. Returns whether it ended before the deadline.
  bool wait(Deadline deadline) const {
    if (ended()) return true;
    sleepers_.fetch_add(1);  // before the check after which this thread may sleep
    const bool over = late_.wait(
        deadline, [this](const auto&) { return ended(); }, [](const auto&) {});
    sleepers_.fetch_sub(1);
    return over;
  }

 private:
  static constexpr Rank kRunning = kAnySource - 2;
  static constexpr Rank kFailed = kAnySource - 1;

  /// State that most operations do not need.
  struct Late {
    std::optional<Error> failure;
    std::vector<std::function<void()>> watchers;
  };

  /// Calls each watcher once, also if several threads call this.
  void call_watchers() {
    const auto watchers = late_.with([](Late& late) { return std::exchange(late.watchers, {}); });
    for (const auto& watcher : watchers) watcher();
  }

  const std::function<std::string()> what_;
  const Timeout timeout_;
  const Rank peer_;
  Deadline deadline_;
  const observe::GroupRecorder* recorder_ = nullptr;
  observe::GroupRecorder::Slot place_;
  std::atomic<Rank> end_{kRunning};  // or the rank at the other end, or kFailed
  mutable std::atomic<int> sleepers_{0};
  std::atomic<bool> watched_{false};
  mutable Guarded<Late> late_;
};

using TicketPtr = std::shared_ptr<Ticket>;

}  // namespace peal::mail
