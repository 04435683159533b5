// A deterministic scheduler for real threads. One thread runs at a time. At each scheduling point
// (a mutex, a condition, a sleep, a poll, a look at the clock; see interpose.cpp) a random number
// decides which thread runs next. Time is virtual: it passes when every thread sleeps, and
// sometimes earlier, as on a loaded machine. So a seed repeats a run, step by step.
//
// The tests of this folder run whole groups under it, to find wake-ups that are lost.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>

namespace peal::explore {

/// Virtual time.
struct Instant {
  std::int64_t nanoseconds = 0;

  static constexpr Instant never() { return {INT64_MAX}; }
  friend constexpr auto operator<=>(Instant, Instant) = default;
};

/// The exit code of a process that makes no progress any more.
inline constexpr int kStandstill = 42;

struct Options {
  std::uint64_t seed = 0;
  /// How long all threads may sleep without progress, in virtual time.
  std::chrono::nanoseconds longest_standstill = std::chrono::milliseconds(60);
  /// Records where each thread falls asleep, for the report. Slow.
  bool remembers_stacks = false;
};

/// Runs `body` under the scheduler, on this thread, and every thread that `body` starts. A process
/// calls it once. If all threads sleep and nothing but the time would wake them, it prints what
/// each thread sleeps on and ends the process with kStandstill.
void run(const Options& options, const std::function<void()>& body);

/// Whether this thread is under the scheduler. The functions below are for such threads only.
bool is_managed();

/// A scheduling point.
void point();
/// The same, for a thread that lets others run first.
void yield();
/// The same, for a thread that has looked for work, found none, and is about to sleep. Wake-ups are
/// lost most easily here, so the thread is often held up until all others sleep.
void point_before_sleep();
/// Reports progress: ends a period without progress.
void progress();
/// A random number below `bound`.
std::uint64_t choose(std::uint64_t bound);

/// The virtual time. Each call takes a little time, so a loop that polls until a deadline ends.
Instant look_at_clock();

enum class Woken : std::uint8_t { kReady, kLate };
/// Sleeps until `ready()` or the deadline. The scheduler calls `ready` while no thread runs. `why`
/// names the sleep in the report.
Woken sleep_until(Instant deadline, const char* why, std::function<bool()> ready);

/// A new thread: its parent adds it, and the thread itself enters and leaves.
struct Thread;
Thread& add_thread();
void enter_thread(Thread& thread);
void leave_thread();
bool has_left(const Thread& thread);

}  // namespace peal::explore
