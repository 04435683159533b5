// How a rank that sleeps in poll(2) is woken by those who move bytes in memory: an eventfd, which
// is rung only if somebody sleeps. Used by the channels over rings (ring_channel.h) and,
// for `interrupt` and for what is read ahead, by all others.
#pragma once

#include <atomic>
#include <cstdint>

#include "peal/base/fd.h"

namespace peal::transport {

/// The part that lies in memory which all ringers can reach; zero in the beginning.
struct alignas(64) BellState {
  /// Odd while the sleeper sleeps. Grows with every change, so that a ringer that was stopped marks
  /// no later sleep as rung.
  std::atomic<std::uint32_t> sleeps;
};

/// One end of a doorbell: the sleeper's, or a ringer's. Which of the functions are called tells.
/// No wake-up is lost: the sleeper says that it sleeps and then looks once more for work; the
/// ringer publishes the work (sequentially consistent) and then looks for sleepers. It rings before
/// it marks the sleep as rung: if it is stopped or killed between the two, others still ring.
class Doorbell {
 public:
  /// The sleeper's end. `state` outlives it. Throws Error(resource).
  explicit Doorbell(BellState& state);
  /// A ringer's end: `event` is a duplicate of the sleeper's.
  Doorbell(BellState& state, Fd event) : state_(&state), event_(std::move(event)) {}

  int event() const { return event_.get(); }

  // ---- the sleeper's, one thread at a time
  void lie_down() noexcept { state_->sleeps.fetch_or(1); }
  void get_up() noexcept { mark_rung(state_->sleeps.load()); }
  /// Forgets that the bell was rung.
  void hush() noexcept;

  // ---- the ringers', any thread
  void ring() noexcept;
  /// Cost: a load while nobody sleeps.
  void ring_if_asleep() noexcept {
    const std::uint32_t sleep = state_->sleeps.load();
    if (sleep % 2 == 0) return;
    ring();
    mark_rung(sleep);
  }

 private:
  /// Ends this sleep, unless it has ended.
  void mark_rung(std::uint32_t sleep) noexcept {
    if (sleep % 2 != 0) state_->sleeps.compare_exchange_strong(sleep, sleep + 1);
  }

  BellState* state_;
  Fd event_;
};

}  // namespace peal::transport
