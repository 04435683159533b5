// How a rank stores what it stages. Ordinary stores are best where the ranks' cores share a cache.
// Where they do not, writing a line that another core has only read takes ten times as long as
// writing past the caches. Which of both is so can be seen by no file of the system's in a virtual
// machine, and changes while a job runs; so the rank watches what its copies take.
#pragma once

#include <chrono>
#include <cstdint>

#include "peal/base/units.h"
#include "peal/kernels/kernels.h"

namespace peal::engine {

/// Of a rank of its own: nobody else needs to know. Threads: one at a time.
class StageStores {
 public:
  /// Smaller copies are stored the ordinary way, and not watched.
  static constexpr Bytes kSmallest = 16_KiB;

  /// How the next bytes of a copy are best stored, and how many of them: what is tried out is tried
  /// on a few.
  struct Advice {
    kernels::Stores stores = kernels::Stores::kCached;
    Bytes size;
  };
  Advice next(Bytes left) const;

  /// What that took.
  void took(const Advice& advice, std::chrono::nanoseconds time);

 private:
  /// For a line of 64 bytes; measured: 1.5 to 4 within a shared cache, 20 to 30 beyond it, and 2 to
  /// 4 past the caches everywhere.
  static constexpr std::int64_t kFar = 10;
  static constexpr int kShortest = 64;
  static constexpr int kLongest = 4096;

  int suspicions_ = 0;      // slow copies in a row
  int streaming_ = 0;       // copies until ordinary stores are tried again; 0: they are in use
  int period_ = kShortest;  // how many the next time
};

}  // namespace peal::engine
