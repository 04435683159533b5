// Whether a thread that carries out operations beside the application's threads finds a core free.
//
// While they compute on its core, a yield takes a slice of some milliseconds, for each of dozens of
// waits in an operation: 16 MiB took 31 ms so beside a backward pass of one thread on one core, and
// 8 to 12 ms with sleeping. While they wait, as at the end of that pass, sleeping costs the time to
// wake at each of those waits: 24 MiB took 5.2 ms so, and 2.6 ms with yielding.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <ctime>

#include "peal/base/clock.h"
#include "peal/base/cpus.h"

namespace peal::native {

/// Threads: of one thread, which is the one that asks.
class Neighbours {
 public:
  /// Yields the core, and learns from how long that took whether somebody computes on it.
  void yield() {
    const TimePoint begin = Clock::now();
    ::sched_yield();
    if (Clock::now() - begin <= kLongYield) return;
    crowd_ = true;
    last_ = look();
  }

  /// Whether they computed when this was last seen: while this thread was off the core, no CPU was
  /// idle for half of the time. Cost while they did: some system calls.
  bool crowd() {
    if (!crowd_) return false;
    const Look now = look();
    const Duration off = now.at - last_.at - (now.own - last_.own);
    if (off < kLeast) return true;
    const Duration idle = (now.at - last_.at) * cpus_ - (now.all - last_.all);
    last_ = now;
    crowd_ = idle < off / 2;
    return crowd_;
  }

 private:
  /// A peer that polls gives the core back sooner.
  static constexpr std::chrono::microseconds kLongYield{50};
  /// As short as a sleep can be: what happened in less says little.
  static constexpr std::chrono::microseconds kLeast{20};

  struct Look {
    TimePoint at;
    std::chrono::nanoseconds own{};  // time of CPUs that this thread has used
    std::chrono::nanoseconds all{};  // and the whole process
  };

  static Look look() {
    return {Clock::now(), used(CLOCK_THREAD_CPUTIME_ID), used(CLOCK_PROCESS_CPUTIME_ID)};
  }
  static std::chrono::nanoseconds used(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  int cpus_ = cpus_of(std::array{std::int64_t{::getpid()}});
  bool crowd_ = false;
  Look last_;
};

}  // namespace peal::native
