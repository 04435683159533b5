// Wakes a sleeping rank when a peer has moved bytes in shared memory. A peer rings only if the
// sleeper says that it sleeps. An eventfd wakes a thread that sleeps in poll(2), with other
// descriptors or for several channels. A futex in the shared memory wakes a thread that sleeps for
// one channel only; it costs no descriptor. Used by the channels over rings (ring_channel.h). All
// other channels use it for `interrupt` and for data that is read ahead.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "peal/base/clock.h"
#include "peal/system/fd.h"

namespace peal::transport {

/// An eventfd. Threads: any.
class Event {
 public:
  /// Throws Error(resource).
  Event();
  /// From a duplicate of another process's eventfd.
  explicit Event(Fd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  void ring() noexcept;
  /// Resets the event: it is not rung any more.
  void reset_count() noexcept;

 private:
  Fd fd_;
};

/// The part that lies in memory which all ringers can reach; zero in the beginning.
struct alignas(64) BellState {
  /// Odd while the sleeper sleeps. Grows with every change, so that a ringer that was stopped marks
  /// no later sleep as rung.
  std::atomic<std::uint32_t> sleeps;
};

/// One end of a doorbell: the sleeper's, or a ringer's, depending on which functions are called. No
/// wake-up is lost. The sleeper announces its sleep and then checks once more for work. The ringer
/// publishes the work (sequentially consistent) and then checks for sleepers.
///
/// With an event, the ringer rings before it marks the sleep as rung. If the ringer is stopped or
/// killed between the two, other ringers still ring. With a futex, the ringer marks first, because
/// a futex keeps no wake-up for a thread that does not sleep yet. If the ringer is stopped or
/// killed between the two, the sleeper sleeps on. So a sleep on a futex is short (see RingChannel).
class Doorbell {
 public:
  /// With a futex. `state` outlives the doorbell.
  explicit Doorbell(BellState& state) : state_(&state) {}
  /// With an event: the sleeper's own, or a duplicate. Several doorbells of one sleeper may share
  /// an event. With a futex if `event` is null.
  Doorbell(BellState& state, std::shared_ptr<Event> event)
      : state_(&state), event_(std::move(event)) {}

  /// Null with a futex.
  Event* event() const { return event_.get(); }

  // ---- for the sleeper, one thread at a time
  /// Returns what to pass to `sleep`.
  std::uint32_t announce_sleep() noexcept { return state_->sleeps.fetch_or(1) | 1; }
  /// With a futex: sleeps until a ring since `announce_sleep`, or the deadline. May return early.
  void sleep(std::uint32_t announced, Deadline deadline) noexcept;
  /// During a sleep: whether a ringer has ended it. If not, a new sleep begins, and a late ringer
  /// that marks the old sleep as rung does not end the new one.
  bool check_rung() noexcept { return state_->sleeps.fetch_add(2) % 2 == 0; }
  void end_sleep() noexcept { mark_rung(state_->sleeps.load()); }

  // ---- for the ringers, any thread
  /// Rings even if the sleeper does not say that it sleeps. With a futex: rings only if it does.
  void ring() noexcept;
  /// Cost: a load while the sleeper is awake.
  void ring_if_asleep() noexcept {
    const std::uint32_t sleep = state_->sleeps.load();
    if (sleep % 2 != 0) wake(sleep);
  }

 private:
  void wake(std::uint32_t sleep) noexcept;
  /// Ends this sleep, unless it has ended.
  void mark_rung(std::uint32_t sleep) noexcept {
    if (sleep % 2 != 0) state_->sleeps.compare_exchange_strong(sleep, sleep + 1);
  }

  BellState* state_;
  std::shared_ptr<Event> event_;
};

}  // namespace peal::transport
