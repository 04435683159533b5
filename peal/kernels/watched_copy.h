// Copies into memory that other cores read next: the stage, and the rings between ranks. If the
// cores share a cache, ordinary stores are best. If they do not, writing a line that another core
// has only read takes ten times as long as writing past the caches. In a virtual machine, no system
// file tells which case applies, and the case changes while a job runs. So each copier measures its
// copies.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "peal/base/units.h"
#include "peal/kernels/kernels.h"

namespace peal::kernels {

/// One for each copier and target memory. Threads: one at a time.
class WatchedCopy {
 public:
  /// Smaller copies use ordinary stores and are not measured.
  static constexpr Bytes kSmallest = 16_KiB;

  /// Copies. The two memories must not overlap.
  void operator()(const std::byte* from, std::byte* to, Bytes size) {
    if (size < kSmallest) {
      std::memcpy(to, from, static_cast<std::size_t>(size.value));
    } else {
      copy_and_watch(from, to, size);
    }
  }

  /// How to store the next bytes of a copy, and how many bytes: a trial uses only a few.
  struct Advice {
    Stores stores = Stores::kCached;
    Bytes size;
  };
  Advice next(Bytes left) const;

  /// Reports the time of the copy that `next` advised. For stores past the caches the time does not
  /// matter.
  void took(const Advice& advice, std::chrono::nanoseconds time);

 private:
  /// The limit in nanoseconds for a line of 64 bytes. Measured: 1.5 to 4 within a shared cache, 20
  /// to 30 beyond it, and 2 to 4 past the caches everywhere.
  static constexpr std::int64_t kFar = 10;
  static constexpr int kShortest = 64;
  static constexpr int kLongest = 4096;

  /// While copies are fast, only one in this many is measured: reading the clock twice takes a
  /// tenth of the time of the smallest copy.
  static constexpr int kWatchEvery = 4;

  bool suspects_nothing() const {
    return suspicions_ == 0 && streaming_ == 0 && period_ == kShortest;
  }
  void copy_and_watch(const std::byte* from, std::byte* to, Bytes size);

  int unwatched_ = 0;       // copies since the last one that was measured
  int suspicions_ = 0;      // slow copies in a row
  int streaming_ = 0;       // copies until ordinary stores are tried again; 0: they are in use
  int period_ = kShortest;  // length of the next streaming period, in copies
};

}  // namespace peal::kernels
