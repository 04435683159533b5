// A barrier of flags in memory that the workers of a fleet share. It is the same for every backend,
// so that no backend is measured with its own barrier. The workers in other languages have a copy
// of it.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "peal/base/units.h"
#include "peal/system/cpu_pause.h"

namespace peal::bench {

/// How to wait.
enum class Waiting : unsigned char {
  kSpin,   // each rank has a core: spin for a while, then as kYield
  kYield,  // ranks share cores
};

/// How to treat a long wait.
enum class Rest : unsigned char {
  kNone,   // does not sleep, because the wait is a part of the measurement
  kSleep,  // sleeps: threads of the backend may still have to send on this core, and a late start
           // of a rank does not change the result
};

/// The pauses between repeated checks of a flag. peal's own waits have other pauses
/// (backends/native/backoff.h): the workers of all backends must wait in the same way, and a change
/// of peal must not change the barrier.
class SpinWait final {
 public:
  SpinWait(Waiting waiting, Rest rest)
      : spins_(waiting == Waiting::kSpin ? kSpins : 0), rest_(rest) {}
  void pause() {
    if (spins_ > 0) {
      --spins_;
      cpu_pause();
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

  int spins_;
  std::int64_t yields_ = kYields;
  Rest rest_;
};

/// Each rank has a counter in its own line of 64 bytes. Only that rank writes the counter.
/// Threads: one; the other ranks are processes.
class Flags final {
 public:
  static constexpr std::size_t kLine = 64;

  /// `lines`: zeroed memory of kLine bytes for each rank, shared by all.
  Flags(std::byte* lines, Rank rank, int ranks, Waiting waiting, Rest rest)
      : lines_(lines), rank_(rank), ranks_(ranks), waiting_(waiting), rest_(rest) {}

  /// Returns when all ranks have called it the same number of times. Has no deadline: the
  /// coordinator kills a worker whose peer has ended.
  void meet() {
    signal();
    for (Rank rank = 0; rank < ranks_; ++rank) await(rank);
  }
  void signal() { flag_of(rank_).store(++count_, std::memory_order_release); }
  /// Returns when `rank` has signalled as often as this rank.
  void await(Rank rank) const {
    SpinWait wait(waiting_, rest_);
    while (flag_of(rank).load(std::memory_order_acquire) < count_) wait.pause();
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
