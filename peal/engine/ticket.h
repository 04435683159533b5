// The end of one operation, which somebody may wait for: the engine's side of a Work.
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

namespace peal::engine {

/// Threads: any number at once. Ends once; later ends are ignored.
class Ticket {
 public:
  /// `what` names the operation in errors: "recv of 10 f32 from rank 1"; `peer` is whom it is with.
  Ticket(std::string what, Timeout timeout, Rank peer = kAnySource)
      : what_([text = std::move(what)] { return text; }),
        timeout_(timeout),
        peer_(peer),
        deadline_(Deadline::after(timeout)) {}
  /// For an operation that may end before anyone asks for its name or the time: both cost more than
  /// a small message. Its time runs from `reckon` on.
  Ticket(std::function<std::string()> what, Timeout timeout, Rank peer = kAnySource)
      : what_(std::move(what)), timeout_(timeout), peer_(peer), deadline_(TimePoint::max()) {}

  std::string what() const { return what_(); }
  Timeout timeout() const { return timeout_; }
  /// kAnySource where it is with nobody in particular.
  Rank peer() const { return peer_; }
  Deadline deadline() const { return deadline_; }
  /// The deadline, from now if none was reckoned before. Not while others ask for it.
  Deadline reckon() {
    if (deadline_.at() == TimePoint::max()) deadline_ = Deadline::after(timeout_);
    return deadline_;
  }

  /// Its end is to be recorded there; before it can end. The recorder outlives whoever ends it.
  void record(const observe::GroupRecorder& recorder, const observe::GroupRecorder::Place& place) {
    recorder_ = &recorder;
    place_ = place;
  }

  /// Calls `then`, which throws nothing, when this has ended: at once if it has, else on the thread
  /// that ends it, with whatever locks that holds.
  void when_ended(std::function<void()> then) {
    late_.with([&](Late& late) { late.watchers.push_back(std::move(then)); });
    watched_.store(true);  // before the look at the end, as whoever ends it looks after it
    if (ended()) call_watchers();
  }

  /// Cost: one exchange where nobody sleeps or watches.
  void succeed(Rank source) {
    succeed_untold(source);
    tell_watchers();
  }
  void fail(const Error& error) {
    fail_untold(error);
    tell_watchers();
  }
  /// The same for who does something else before it tells those who watch: it does so next.
  void succeed_untold(Rank source) {
    Rank running = kRunning;
    if (!end_.compare_exchange_strong(running, source)) return;
    if (recorder_ != nullptr) recorder_->end(place_, observe::GroupRecorder::Ending::kWell);
    if (sleepers_.load() > 0) late_.update([](const auto&) {});  // which wakes them
  }
  void fail_untold(const Error& error) {
    late_.update([&](Late& late) {
      if (ended()) return;
      late.failure = error;
      Rank running = kRunning;
      if (!end_.compare_exchange_strong(running, kFailed)) return late.failure.reset();
      if (recorder_ != nullptr) recorder_->end(place_, observe::GroupRecorder::Ending::kFailed);
    });
  }
  /// When ended: whether somebody is to be told. Who comes later tells himself.
  bool is_watched() const noexcept { return watched_.load(); }
  void tell_watchers() {
    if (is_watched()) call_watchers();
  }

  bool ended() const noexcept { return end_.load() != kRunning; }
  /// Null while it runs and after it went well. Each call makes one of its own: exceptions that
  /// threads share are a race for whoever looks at them.
  std::exception_ptr exception() const {
    if (end_.load() != kFailed) return nullptr;
    return late_.with(
        [](const Late& late) { return std::make_exception_ptr(Error(*late.failure)); });
  }
  /// When ended: throws what it ended with, or returns who was at the other end.
  Rank result() const {
    if (const Rank end = end_.load(); end != kFailed) return end;
    throw late_.with([](const Late& late) { return *late.failure; });
  }
  /// When ended well; else kAnySource.
  Rank source() const { return std::max(end_.load(), kAnySource); }

  /// Returns whether it ended before the deadline.
  bool wait(Deadline deadline) const {
    if (ended()) return true;
    sleepers_.fetch_add(1);  // before the look from which it may sleep
    const bool over = late_.wait(
        deadline, [this](const auto&) { return ended(); }, [](const auto&) {});
    sleepers_.fetch_sub(1);
    return over;
  }

 private:
  static constexpr Rank kRunning = kAnySource - 2;
  static constexpr Rank kFailed = kAnySource - 1;

  /// What most operations have no need of.
  struct Late {
    std::optional<Error> failure;
    std::vector<std::function<void()>> watchers;
  };

  /// Each is called once, whoever comes here.
  void call_watchers() {
    const auto watchers = late_.with([](Late& late) { return std::exchange(late.watchers, {}); });
    for (const auto& watcher : watchers) watcher();
  }

  const std::function<std::string()> what_;
  const Timeout timeout_;
  const Rank peer_;
  Deadline deadline_;
  const observe::GroupRecorder* recorder_ = nullptr;
  observe::GroupRecorder::Place place_;
  std::atomic<Rank> end_{kRunning};  // or who was at the other end, or kFailed
  mutable std::atomic<int> sleepers_{0};
  std::atomic<bool> watched_{false};
  mutable Guarded<Late> late_;
};

using TicketPtr = std::shared_ptr<Ticket>;

}  // namespace peal::engine
