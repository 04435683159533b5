// How a thread waits for something that is usually near: it polls, then yields, then sleeps. Where
// ranks share cores the thread does not spin, because the peer may need the core. A thread beside
// the application's threads does not yield while those compute: a thread that yields gets the core
// back after a slice of milliseconds, and a thread that sleeps is woken at once.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <ctime>

#include "peal/backends/native/core_share.h"
#include "peal/base/clock.h"

namespace peal::native {

enum class Cores : std::uint8_t {
  kOwn,     // a core for each thread that polls: spinning costs nobody anything
  kShared,  // the peer may need this core
};

/// How often and for how long one wait may yield. Where many processes share the cores, a yield can
/// take 10 ms or more, and the caller looks at its deadline only when the wait is over.
class YieldLimit {
 public:
  void renew() { yields_ = 0; }

  /// Whether the thread may yield once more.
  bool allows_another(TimePoint now) {
    if (yields_ == 0) since_ = now;
    if (yields_ >= kYields || now - since_ >= kLongest) return false;
    ++yields_;
    return true;
  }

  bool has_begun() const { return yields_ > 0; }

 private:
  static constexpr int kYields = 100;
  static constexpr std::chrono::milliseconds kLongest{20};

  int yields_ = 0;
  TimePoint since_;
};

class Patience {
 public:
  explicit Patience(Cores cores) : spins_(cores == Cores::kOwn) {}
  /// Of a thread that has no core of its own, for as long as it lives.
  explicit Patience(CoreShare& share) : share_(&share) {}

  /// Something moved: start over.
  void renew() {
    polls_ = 0;
    yields_.renew();
  }

  /// Waits for a moment; returns false when it is time to sleep instead.
  bool wait() {
    if (spins_ && may_spin()) {
      if (polls_ > kEager) relax();
    } else if ((share_ == nullptr || !share_->is_crowded()) &&
               yields_.allows_another(coarse_now())) {
      yield();
    } else {
      return false;
    }
    return true;
  }

  /// Whether the caller should check its deadline now. The caller asks after a poll and before
  /// renew(). Most answers are no, because reading the clock can cost more than the poll.
  bool is_time_for_deadline() {
    if (++asked_ % kAsksPerDeadline == 0) return true;
    if (!yields_.has_begun()) return false;
    const TimePoint now = coarse_now();
    if (now - checked_ < kMoment) return false;
    checked_ = now;
    return true;
  }

 private:
  static constexpr std::uint32_t kAsksPerDeadline = 256;
  /// Where the thread yields, a check is due after this time, plus one yield and one tick of the
  /// system's timer.
  static constexpr std::chrono::milliseconds kMoment{2};
  /// Polls without a pause: less than a microsecond, in which most small operations end. A pause
  /// takes up to 40 ns, a fifth of such an operation.
  static constexpr int kEager = 100;
  /// What is polled may be a flag in memory or a system call, so the limit is a time; asking for it
  /// costs as much as a few polls of a flag.
  static constexpr std::chrono::microseconds kSpin{100};
  static constexpr int kPollsPerLook = 64;

  bool may_spin() {
    if (yields_.has_begun()) return false;
    if (++polls_ % kPollsPerLook != 0) return true;
    const TimePoint now = Clock::now();
    if (polls_ == kPollsPerLook) since_ = now;
    return now - since_ < kSpin;
  }

  void yield() {
    if (share_ == nullptr) {
      ::sched_yield();
    } else {
      share_->yield();
    }
  }

  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  /// The time of the system timer's last tick, at most 10 ms ago. Cost: 5 ns.
  static TimePoint coarse_now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return TimePoint(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }

  bool spins_ = false;
  CoreShare* share_ = nullptr;
  int polls_ = 0;
  TimePoint since_;  // the first look at the clock while spinning
  std::uint32_t asked_ = 0;
  TimePoint checked_;
  YieldLimit yields_;
};

}  // namespace peal::native
