// Lets one thread at a time in, by one exchange where nobody else is about. Whoever finds somebody
// inside, or wants more than to go in, closes it and goes on under the lock that the gate is
// beside. Once it is closed for good, nobody is inside of whom that lock's data does not tell.
#pragma once

#include <atomic>
#include <cstdint>

namespace peal::native {

/// Threads: `try_enter` and `try_leave` from any; `close` and `open` under that lock.
class Gate {
 public:
  bool try_enter() noexcept { return moves(State::kOpen, State::kTaken); }
  /// By who has entered. False if it was closed meanwhile: then the lock's data says that somebody
  /// is inside, and is to be told.
  bool try_leave() noexcept { return moves(State::kTaken, State::kOpen); }

  /// Nobody enters any more. Returns whether somebody is inside who has not been told of before.
  bool close() noexcept { return state_.exchange(State::kClosed) == State::kTaken; }
  void open() noexcept { state_.store(State::kOpen); }

 private:
  enum class State : std::uint8_t { kOpen, kTaken, kClosed };

  bool moves(State from, State to) noexcept { return state_.compare_exchange_strong(from, to); }

  std::atomic<State> state_ = State::kOpen;
};

}  // namespace peal::native
