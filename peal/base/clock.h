// Time as the library uses it: monotonic, and passed as an argument wherever a decision depends on
// it.
#pragma once

#include <algorithm>
#include <chrono>

namespace peal {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

/// How long something may take. Zero means "do not wait at all".
using Timeout = std::chrono::milliseconds;

/// Stands for the timeout that the group was made with.
inline constexpr Timeout kGroupTimeout{-1};

/// The moment at which waiting ends. Every wait in the library has one.
class Deadline {
 public:
  explicit Deadline(TimePoint at) : at_(at) {}
  /// `timeout` from now; timeouts so long that the clock would overflow mean "never".
  static Deadline after(Timeout timeout) {
    const TimePoint now = Clock::now();
    const bool never = timeout > std::chrono::hours(24 * 365 * 100);
    return Deadline(never ? TimePoint::max() : now + timeout);
  }

  TimePoint at() const { return at_; }
  bool passed(TimePoint now = Clock::now()) const { return now >= at_; }
  /// Time left, rounded up to milliseconds, at least 0. It may be more than the int of poll(2).
  Timeout left(TimePoint now = Clock::now()) const {
    return std::max(Timeout(0), std::chrono::ceil<Timeout>(at_ - now));
  }
  /// The earlier of this and `now + slice`: waits that must look around from time to time.
  Deadline within(Duration slice, TimePoint now = Clock::now()) const {
    return Deadline(at_ - now < slice ? at_ : now + slice);
  }

 private:
  TimePoint at_;
};

}  // namespace peal
