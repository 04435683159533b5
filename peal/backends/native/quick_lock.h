// A fast lock for one thread at a time, which costs one exchange without contention. Beside it
// there is an ordinary lock. A thread that finds the quick lock taken, or needs more than to enter,
// closes the quick lock and continues under the ordinary lock. While the quick lock is closed, the
// data of the ordinary lock says whether a thread is inside.
#pragma once

#include <atomic>
#include <cstdint>

namespace peal::native {

/// Threads: `try_enter` and `try_leave` from any; `close` and `open` under the ordinary lock.
class QuickLock {
 public:
  bool try_enter() noexcept { return moves(State::kOpen, State::kTaken); }
  /// For the thread that has entered. False if the quick lock was closed meanwhile: then the data
  /// of the ordinary lock says that a thread is inside, and must be updated.
  bool try_leave() noexcept { return moves(State::kTaken, State::kOpen); }

  /// Closes the quick lock for all threads. Returns whether a thread is inside that the data of the
  /// ordinary lock does not record yet.
  bool close() noexcept { return state_.exchange(State::kClosed) == State::kTaken; }
  void open() noexcept { state_.store(State::kOpen); }

 private:
  enum class State : std::uint8_t { kOpen, kTaken, kClosed };

  bool moves(State from, State to) noexcept { return state_.compare_exchange_strong(from, to); }

  std::atomic<State> state_ = State::kOpen;
};

}  // namespace peal::native
