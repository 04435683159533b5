// Copies into memory that other cores read next: the stage, and the rings between ranks. Ordinary
// stores are best where the cores share a cache. Where they do not, writing a line that another
// core has only read takes ten times as long as writing past the caches. Which of both is so can be
// seen by no file of the system's in a virtual machine, and changes while a job runs; so whoever
// copies watches what it takes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "peal/base/units.h"
#include "peal/kernels/kernels.h"

namespace peal::kernels {

/// Of who copies, and for one place. Threads: one at a time.
class WatchedCopy {
 public:
  /// Smaller copies are stored the ordinary way, and not watched.
  static constexpr Bytes kSmallest = 16_KiB;

  /// Copies; the two do not overlap.
  void operator()(const std::byte* from, std::byte* to, Bytes size) {
    if (size < kSmallest) {
      std::memcpy(to, from, static_cast<std::size_t>(size.value));
    } else {
      copy_and_watch(from, to, size);
    }
  }

  /// How the next bytes of a copy are best stored, and how many of them: what is tried out is tried
  /// on a few.
  struct Advice {
    Stores stores = Stores::kCached;
    Bytes size;
  };
  Advice next(Bytes left) const;

  /// What that took; for stores past the caches the time does not matter.
  void took(const Advice& advice, std::chrono::nanoseconds time);

 private:
  /// For a line of 64 bytes; measured: 1.5 to 4 within a shared cache, 20 to 30 beyond it, and 2 to
  /// 4 past the caches everywhere.
  static constexpr std::int64_t kFar = 10;
  static constexpr int kShortest = 64;
  static constexpr int kLongest = 4096;

  /// Asking for the time twice takes a tenth of what the smallest copy does.
  static constexpr int kWatchEvery = 4;

  bool suspects_nothing() const {
    return suspicions_ == 0 && streaming_ == 0 && period_ == kShortest;
  }
  void copy_and_watch(const std::byte* from, std::byte* to, Bytes size);

  int unwatched_ = 0;       // copies since the last that was watched
  int suspicions_ = 0;      // slow copies in a row
  int streaming_ = 0;       // copies until ordinary stores are tried again; 0: they are in use
  int period_ = kShortest;  // how many the next time
};

}  // namespace peal::kernels
