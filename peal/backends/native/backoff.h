// How a thread waits for an event that is usually near: it polls, then yields, then sleeps. If
// ranks share cores, the thread does not spin, because spinning keeps the peer that it waits for
// from the core. A worker thread does not yield either while the application's threads compute on
// its core: after a yield it waits milliseconds for the core, but after a wake-up it gets the core
// at once.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <ctime>

#include "peal/backends/native/core_share.h"
#include "peal/base/clock.h"
#include "peal/system/cpu_pause.h"

namespace peal::native {

enum class Cores : std::uint8_t {
  kOwn,     // a core for each polling thread: spinning costs the others nothing
  kShared,  // the peer may need this core
};

/// How often and for how long one wait may yield. If many processes share the cores, a yield can
/// take 10 ms or more, and the caller checks its deadline only after the wait.
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

/// Threads: one.
class Backoff {
 public:
  explicit Backoff(Cores cores) : spins_(cores == Cores::kOwn) {}
  /// For a thread without a core of its own, as long as it lives.
  explicit Backoff(CoreShare& share) : share_(&share) {}

  /// Restarts the wait after progress.
  void renew() {
    polls_ = 0;
    yields_.renew();
  }

  /// Waits for a moment; returns false when the thread should sleep instead.
  bool wait() {
    if (spins_ && may_spin()) {
      if (polls_ > kEager) cpu_pause();
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
  /// The limit is a time, because a poll may read a flag in memory or make a system call. Reading
  /// the clock costs as much as a few polls of a flag.
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
