// Time in the library: monotonic, and passed as an argument wherever a decision depends on it.
#pragma once

#include <algorithm>
#include <chrono>

namespace peal {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

/// How long an operation may take. Zero means "do not wait at all".
using Timeout = std::chrono::milliseconds;

/// The timeout that the group was created with.
inline constexpr Timeout kGroupTimeout{-1};

/// The time at which a wait ends. Every wait in the library has a deadline.
class Deadline {
 public:
  explicit Deadline(TimePoint at) : at_(at) {}
  /// `timeout` from now. A timeout that would overflow the clock means "never".
  static Deadline after(Timeout timeout) {
    const TimePoint now = Clock::now();
    const bool never = timeout > std::chrono::hours(24 * 365 * 100);
    return Deadline(never ? TimePoint::max() : now + timeout);
  }

  TimePoint at() const { return at_; }
  bool passed(TimePoint now = Clock::now()) const { return now >= at_; }
  /// The time left, rounded up to milliseconds, at least 0. May exceed the int of poll(2).
  Timeout left(TimePoint now = Clock::now()) const {
    return std::max(Timeout(0), std::chrono::ceil<Timeout>(at_ - now));
  }
  /// The earlier of this deadline and `now + slice`, for a wait that must check something
  /// regularly.
  Deadline within(Duration slice, TimePoint now = Clock::now()) const {
    return Deadline(at_ - now < slice ? at_ : now + slice);
  }

 private:
  TimePoint at_;
};

}  // namespace peal
