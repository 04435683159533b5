// How a thread waits for something that is usually near: it polls, then yields, then sleeps. Where
// ranks share cores it does not spin: that would only keep from the core the peer that it waits
// for. A thread beside the application's does not yield either while those compute: who yields gets
// the core back after a slice of milliseconds, who is woken gets it at once.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>

#include "peal/backends/native/core_share.h"
#include "peal/base/clock.h"

namespace peal::native {

enum class Cores : std::uint8_t {
  kOwn,     // a core for each thread that polls: spinning costs nobody anything
  kShared,  // whoever is waited for may need this very core
};

class Patience {
 public:
  explicit Patience(Cores cores) : spins_(cores == Cores::kOwn) {}
  /// Of a thread that has no core of its own, for as long as it lives.
  explicit Patience(CoreShare& share) : share_(&share) {}

  /// Something moved: start over.
  void renew() { polls_ = yields_ = 0; }

  /// Waits for a moment; returns false when it is time to sleep instead.
  bool wait() {
    if (spins_ && may_spin()) {
      if (polls_ > kEager) relax();
    } else if (may_yield()) {
      ++yields_;
      yield();
    } else {
      return false;
    }
    return true;
  }

 private:
  /// Polls without a pause: less than a microsecond, in which most small operations end. A pause
  /// takes up to 40 ns, a fifth of such an operation.
  static constexpr int kEager = 100;
  /// What is polled may be a flag in memory or a system call, so the limit is a time; asking for it
  /// costs as much as a few polls of a flag.
  static constexpr std::chrono::microseconds kSpin{100};
  static constexpr int kPollsPerLook = 64;
  static constexpr int kYields = 100;
  /// Where many processes share the cores, a yield can take 10 ms, and the loop looks at its
  /// deadline only before it sleeps. Most waits end before the first look at the clock.
  static constexpr std::chrono::milliseconds kYield{20};
  static constexpr int kYieldsPerLook = 8;

  bool may_spin() {
    if (yields_ > 0) return false;
    if (++polls_ % kPollsPerLook != 0) return true;
    const TimePoint now = Clock::now();
    if (polls_ == kPollsPerLook) since_ = now;
    return now - since_ < kSpin;
  }

  bool may_yield() {
    if (yields_ >= kYields || (share_ != nullptr && share_->is_crowded())) return false;
    if (yields_ == 0 || yields_ % kYieldsPerLook != 0) return true;
    const TimePoint now = Clock::now();
    if (yields_ == kYieldsPerLook) since_ = now;
    return now - since_ < kYield;
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

  bool spins_ = false;
  CoreShare* share_ = nullptr;
  int polls_ = 0;
  int yields_ = 0;
  TimePoint since_;  // the first look at the clock while spinning, then while yielding
};

/// For what a loop that goes round too fast for it is to do now and then, as asking for the time.
class Seldom {
 public:
  bool is_due() { return ++asked_ % kEvery == 0; }

 private:
  static constexpr std::uint32_t kEvery = 256;
  std::uint32_t asked_ = 0;
};

}  // namespace peal::native
