// How a rank that sleeps in poll(2) is woken by those who move bytes in memory: an eventfd, which
// is rung only if somebody sleeps. Used by the channels over rings (ring_channel.h) and,
// for `interrupt` and for what is read ahead, by all others.
#pragma once

#include <atomic>
#include <cstdint>

#include "peal/base/fd.h"

namespace peal::transport {

/// The part that lies in memory which all who ring can reach; zero in the beginning.
struct alignas(64) BellState {
  std::atomic<std::uint32_t> asleep;
};

/// One end of a doorbell: the sleeper's, or a ringer's. Which of the functions are called tells.
/// No wake-up is lost: the sleeper says that it sleeps and then looks once more for work; the
/// ringer publishes the work (sequentially consistent) and then looks for sleepers.
class Doorbell {
 public:
  /// The sleeper's end. `state` outlives it. Throws Error(resource).
  explicit Doorbell(BellState& state);
  /// A ringer's end: `event` is a duplicate of the sleeper's.
  Doorbell(BellState& state, Fd event) : state_(&state), event_(std::move(event)) {}

  int event() const { return event_.get(); }

  // ---- the sleeper's, one thread at a time
  void lie_down() noexcept { state_->asleep.store(1); }
  void get_up() noexcept { state_->asleep.store(0); }
  /// Forgets that the bell was rung.
  void hush() noexcept;

  // ---- the ringers', any thread
  void ring() noexcept;
  /// Cost: a load while nobody sleeps.
  void ring_if_asleep() noexcept {
    if (state_->asleep.load() != 0 && state_->asleep.exchange(0) != 0) ring();
  }

 private:
  BellState* state_;
  Fd event_;
};

}  // namespace peal::transport
