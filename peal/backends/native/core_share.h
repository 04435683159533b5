// Whether a worker thread, which runs operations beside the application's threads, has a free core.
//
// An operation waits dozens of times. If the application's threads compute on the worker's core,
// each yield takes some milliseconds. Then the worker sleeps instead, because a wake-up gets the
// core at once. If the application's threads wait, for example for this operation, each sleep costs
// a wake-up. Then the worker yields. The costs: docs/decisions/0013.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "peal/base/clock.h"

namespace peal::native {

/// How many of the host's CPUs a rank may keep busy, at least 1. Its share of the CPUs of all ranks
/// of the host is `of_all` / `ranks`. Limited to its `own` CPUs if ranks are bound to CPUs.
constexpr int cpus_of_rank(int own, int of_all, int ranks) {
  return std::max(1, std::min(own, of_all / ranks));
}

/// Threads: only the thread that asks.
class CoreShare {
 public:
  /// `cpus`: how many of the host's CPUs this process may keep busy.
  explicit CoreShare(int cpus) : cpus_(cpus) {}

  /// The CPU time used up to some moment.
  struct Sample {
    TimePoint at;
    std::chrono::nanoseconds own{};  // by this thread
    std::chrono::nanoseconds all{};  // by the whole process
  };
  enum class Finding { kFree, kCrowded, kTooShort };

  /// Whether the process's other threads leave a core to this thread: while this thread was off its
  /// core, one of `cpus` was idle for half of the time.
  static Finding judge(const Sample& before, const Sample& now, int cpus) {
    const Duration off = now.at - before.at - (now.own - before.own);
    if (off < kLeast) return Finding::kTooShort;
    const Duration idle = (now.at - before.at) * cpus - (now.all - before.all);
    return idle < off / 2 ? Finding::kCrowded : Finding::kFree;
  }

  /// Yields the core. A long yield shows that another thread computes on the core.
  void yield() {
    const TimePoint begin = Clock::now();
    ::sched_yield();
    if (Clock::now() - begin <= kLongYield) return;
    crowded_ = true;
    last_ = sample();
  }

  /// Cost while crowded: some system calls.
  bool is_crowded() {
    if (!crowded_) return false;
    const Sample now = sample();
    const Finding finding = judge(last_, now, cpus_);
    if (finding == Finding::kTooShort) return true;
    last_ = now;
    crowded_ = finding == Finding::kCrowded;
    return crowded_;
  }

 private:
  /// If another thread only polls on the core, a yield takes less time than this.
  static constexpr std::chrono::microseconds kLongYield{50};
  /// The shortest time off the core that can be judged: about the shortest possible sleep.
  static constexpr std::chrono::microseconds kLeast{20};

  static Sample sample() {
    return {Clock::now(), used(CLOCK_THREAD_CPUTIME_ID), used(CLOCK_PROCESS_CPUTIME_ID)};
  }
  static std::chrono::nanoseconds used(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  int cpus_;
  bool crowded_ = false;
  Sample last_;
};

}  // namespace peal::native
