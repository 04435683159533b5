// A barrier of flags in memory that the workers of a fleet share: the same for every backend, so
// that none is measured by its own. The workers in other languages do the same.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "peal/base/units.h"

namespace peal::bench {

/// What to do while waiting.
enum class Waiting : unsigned char {
  kSpin,   // each rank has a core: look as often as possible for a while, then as kYield
  kYield,  // they share cores
};

/// What to do when the wait is long.
enum class Rest : unsigned char {
  kNone,   // the wait is a part of what is measured
  kSleep,  // what is measured may have threads that still have to send what the others wait for, on
           // this very core; and a rank that begins late does no harm
};

/// One look in vain after another.
class Patience final {
 public:
  Patience(Waiting waiting, Rest rest)
      : spins_(waiting == Waiting::kSpin ? kSpins : 0), rest_(rest) {}
  void pause() {
    if (spins_ > 0) {
      --spins_;
      relax();
    } else if (rest_ == Rest::kNone || yields_ > 0) {
      --yields_;
      ::sched_yield();
    } else {
      ::usleep(kNapMicroseconds);
    }
  }

 private:
  static constexpr int kSpins = 1000;
  static constexpr int kYields = 50;
  static constexpr useconds_t kNapMicroseconds = 20;

  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
  }

  int spins_;
  std::int64_t yields_ = kYields;
  Rest rest_;
};

/// Each rank has one counter in a line of 64 bytes, which only it writes.
/// Threads: one; the other ranks are processes.
class Flags final {
 public:
  static constexpr std::size_t kLine = 64;

  /// `lines`: zeroed memory of kLine bytes for each rank, shared by all.
  Flags(std::byte* lines, Rank rank, int ranks, Waiting waiting, Rest rest)
      : lines_(lines), rank_(rank), ranks_(ranks), waiting_(waiting), rest_(rest) {}

  /// Returns when all ranks have called it as often. Has no deadline: a worker whose peer is gone
  /// is killed by the coordinator.
  void meet() {
    signal();
    for (Rank rank = 0; rank < ranks_; ++rank) await(rank);
  }
  void signal() { flag_of(rank_).store(++count_, std::memory_order_release); }
  /// Returns when `rank` has signalled as often as this one.
  void await(Rank rank) const {
    Patience patience(waiting_, rest_);
    while (flag_of(rank).load(std::memory_order_acquire) < count_) patience.pause();
  }

 private:
  std::atomic_ref<std::uint64_t> flag_of(Rank rank) const {
    const auto line = static_cast<std::size_t>(rank) * kLine;
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(lines_ + line));
  }

  std::byte* lines_;
  Rank rank_;
  int ranks_;
  Waiting waiting_;
  Rest rest_;
  std::uint64_t count_ = 0;
};

}  // namespace peal::bench
