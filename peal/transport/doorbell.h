// How a rank that sleeps is woken by those who move bytes in memory: it is rung only if it says
// that it sleeps. A thread that sleeps in poll(2), with other descriptors or for several channels,
// is rung by an eventfd. A thread that sleeps for one channel alone is rung by a futex in the
// memory, which costs no descriptor. Used by the channels over rings (ring_channel.h) and, for
// `interrupt` and for what is read ahead, by all others.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "peal/base/clock.h"
#include "peal/base/fd.h"

namespace peal::transport {

/// An eventfd. Threads: any.
class Event {
 public:
  /// Throws Error(resource).
  Event();
  /// A duplicate of another process's.
  explicit Event(Fd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  void ring() noexcept;
  /// Forgets that it was rung.
  void hush() noexcept;

 private:
  Fd fd_;
};

/// The part that lies in memory which all ringers can reach; zero in the beginning.
struct alignas(64) BellState {
  /// Odd while the sleeper sleeps. Grows with every change, so that a ringer that was stopped marks
  /// no later sleep as rung.
  std::atomic<std::uint32_t> sleeps;
};

/// One end of a doorbell: the sleeper's, or a ringer's. Which of the functions are called tells.
/// No wake-up is lost: the sleeper says that it sleeps and then looks once more for work; the
/// ringer publishes the work (sequentially consistent) and then looks for sleepers.
///
/// By an event, the ringer rings before it marks the sleep as rung: if it is stopped or killed
/// between the two, others still ring. By a futex it marks first, since the system keeps no wake-up
/// for a sleeper that is not there yet. Should the ringer be stopped or killed between the two, the
/// sleeper sleeps on: so a sleep on a futex is short (see RingChannel).
class Doorbell {
 public:
  /// By a futex. `state` outlives it.
  explicit Doorbell(BellState& state) : state_(&state) {}
  /// By an event, the sleeper's or a duplicate, which several doorbells of one sleeper may share;
  /// by a futex if it is null.
  Doorbell(BellState& state, std::shared_ptr<Event> event)
      : state_(&state), event_(std::move(event)) {}

  /// Null by a futex.
  Event* event() const { return event_.get(); }

  // ---- the sleeper's, one thread at a time
  /// Returns what to pass to `sleep`.
  std::uint32_t lie_down() noexcept { return state_->sleeps.fetch_or(1) | 1; }
  /// By a futex: until it was rung since `lie_down`, or the deadline. May return early.
  void sleep(std::uint32_t lain_down, Deadline deadline) noexcept;
  /// In a sleep: whether a ringer has ended it. If not, another sleep begins: a ringer that is
  /// about to mark the former as rung does not mark this one.
  bool was_rung() noexcept { return state_->sleeps.fetch_add(2) % 2 == 0; }
  void get_up() noexcept { mark_rung(state_->sleeps.load()); }

  // ---- the ringers', any thread
  /// Also if nobody says that it sleeps; by a futex, nobody does then.
  void ring() noexcept;
  /// Cost: a load while nobody sleeps.
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
