// Whether a thread that carries out operations beside the application's threads finds a core free.
//
// While they compute on its core, a yield takes a slice of some milliseconds, for each of dozens of
// waits in an operation; so it sleeps, and is woken at once. While they wait, as for this very
// operation, sleeping costs the time to wake at each of those waits; so it yields. What either
// costs: docs/decisions/0013.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "peal/base/clock.h"

namespace peal::native {

/// How many of the host's CPUs a rank may keep busy, 1 at least: its share of those on which it and
/// its neighbours may run, `of_all` for `ranks`; but not more than its `own`, where each is bound
/// to some.
constexpr int cpus_of_rank(int own, int of_all, int ranks) {
  return std::max(1, std::min(own, of_all / ranks));
}

/// Threads: of one thread, which is the one that asks.
class CoreShare {
 public:
  /// `cpus`: how many of the host's this process may keep busy.
  explicit CoreShare(int cpus) : cpus_(cpus) {}

  /// What was used of the CPUs up to some moment.
  struct Look {
    TimePoint at;
    std::chrono::nanoseconds own{};  // by this thread
    std::chrono::nanoseconds all{};  // by the whole process
  };
  enum class Verdict { kFree, kCrowded, kTooShort };

  /// Whether the process's other threads leave it a core: while this thread was off its core, one
  /// of `cpus` was idle for half of the time.
  static Verdict judge(const Look& before, const Look& now, int cpus) {
    const Duration off = now.at - before.at - (now.own - before.own);
    if (off < kLeast) return Verdict::kTooShort;
    const Duration idle = (now.at - before.at) * cpus - (now.all - before.all);
    return idle < off / 2 ? Verdict::kCrowded : Verdict::kFree;
  }

  /// Yields the core, and learns from how long that took whether somebody computes on it.
  void yield() {
    const TimePoint begin = Clock::now();
    ::sched_yield();
    if (Clock::now() - begin <= kLongYield) return;
    crowded_ = true;
    last_ = look();
  }

  /// Cost while it is: some system calls.
  bool is_crowded() {
    if (!crowded_) return false;
    const Look now = look();
    const Verdict verdict = judge(last_, now, cpus_);
    if (verdict == Verdict::kTooShort) return true;
    last_ = now;
    crowded_ = verdict == Verdict::kCrowded;
    return crowded_;
  }

 private:
  /// A peer that polls gives the core back sooner.
  static constexpr std::chrono::microseconds kLongYield{50};
  /// As short as a sleep can be: what happened in less says little.
  static constexpr std::chrono::microseconds kLeast{20};

  static Look look() {
    return {Clock::now(), used(CLOCK_THREAD_CPUTIME_ID), used(CLOCK_PROCESS_CPUTIME_ID)};
  }
  static std::chrono::nanoseconds used(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  int cpus_;
  bool crowded_ = false;
  Look last_;
};

}  // namespace peal::native
