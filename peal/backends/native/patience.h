// How a thread waits for something that is usually near: it polls, then yields, then sleeps. Where
// ranks share cores it does not spin: that would only keep from the core the peer that it waits
// for. A thread beside the application's does not yield either while those compute: who yields gets
// the core back after a slice of milliseconds, who is woken gets it at once.
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
  kShared,  // whoever is waited for may need this very core
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
  /// Whether more than a moment has passed since the first yield.
  bool has_taken_long(TimePoint now) const { return has_begun() && now - since_ >= kMoment; }

 private:
  static constexpr int kYields = 100;
  static constexpr std::chrono::milliseconds kLongest{20};
  static constexpr std::chrono::milliseconds kMoment{2};

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

  /// Whether the caller, which asks after each poll and before it renews, should check its deadline
  /// now: asking for the time after each poll would cost more than the poll.
  bool is_time_for_deadline() {
    if (++asked_ % kAsksPerDeadline == 0) return true;
    return yields_.has_begun() && yields_.has_taken_long(coarse_now());
  }

 private:
  static constexpr std::uint32_t kAsksPerDeadline = 256;
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
  YieldLimit yields_;
};

}  // namespace peal::native
