// Limits how far a rank's sending may run ahead of its receiving in one operation. Used by
// execution.
//
// A socket accepts megabytes before the peer reads them. By the time the peer reads them, they have
// left the caches. If a rank sends all that the socket accepts, both ends pay for memory traffic,
// and a rank that is ahead takes the core from a rank that is behind. Therefore, in the middle of a
// receive, a rank sends at most `limit` bytes more than it has received. This needs no messages: in
// a balanced schedule, what a rank receives tells how far its peers are. Before the first byte
// arrives, the peer may be waiting for all data of this rank. Then the rank sends on, and checks
// after each `limit` bytes whether bytes arrive.
//
// The limit cannot cause a deadlock: a rank doubles the limit before it would sleep
// (`raise_limit`), so every rank finally sends all its data, whatever the schedule. In this way the
// limit also adapts to a large product of bandwidth and delay. With a schedule that is not
// balanced, or a line that is slower than the cores, the limit soon has no effect.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "peal/base/units.h"

namespace peal::engine {

/// Threads: one at a time.
class Pace {
 public:
  static constexpr Bytes kUnlimited{std::numeric_limits<std::int64_t>::max()};
  /// Fits into the L2 cache of current cores together with the other data. Measured between two
  /// hosts on one machine: without a limit, 64 MiB take up to twice as long.
  static constexpr Bytes kLimit = 512_KiB;

  /// Call at the beginning of an operation.
  void begin() { *this = Pace(); }

  void sent(Bytes bytes) { ahead_ += bytes; }
  void received(Bytes bytes) { ahead_ -= bytes; }

  /// How much a rank that waits for a receive may send before it checks again for bytes.
  enum class Receiving : std::uint8_t { kNotBegun, kBegun };
  Bytes allowance(Receiving receiving) const {
    if (receiving == Receiving::kNotBegun || limit_ == kUnlimited) return limit_;
    return std::max(limit_ - ahead_, Bytes(0));
  }

  /// Call when no byte has arrived for a while.
  void raise_limit() { limit_ = limit_ < kUnlimited / 2 ? limit_ * 2 : kUnlimited; }

 private:
  Bytes limit_ = kLimit;
  Bytes ahead_;  // sent minus received; negative if more was received
};

}  // namespace peal::engine
