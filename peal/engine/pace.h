// How far a rank's sending may run ahead of its receiving in one operation. Used by walk.
//
// A socket takes megabytes that nobody reads yet. By the time somebody does they have left the
// caches, so a rank that sends as much as the socket takes costs both ends memory traffic; and a
// rank that is ahead takes the core from one that is not. So while a rank is in the middle of
// receiving something, it has sent at most `limit` bytes more than it has received. This needs no
// message, since in a balanced schedule every rank's receiving says how far its peers are. Before
// the first byte has come the peer may be waiting for all that this rank has to send; then it sends
// on, and looks after each limit's worth whether something comes.
//
// It cannot deadlock: who would go to sleep doubles the limit first (`relent`), so every rank that
// has something to send sends it in the end, whatever the schedule. The same makes the limit follow
// bandwidth times delay where that is large, and lets a schedule that is not balanced, or a line
// that is slower than the cores, run free.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "peal/base/units.h"

namespace peal::engine {

class Pace {
 public:
  static constexpr Bytes kUnlimited{std::numeric_limits<std::int64_t>::max()};
  /// What fits into the second caches of today's cores beside the rest. Measured between two hosts
  /// on one machine: without a limit 64 MiB take up to twice as long.
  static constexpr Bytes kLimit = 512_KiB;

  /// At the beginning of an operation.
  void begin() { *this = Pace(); }

  void sent(Bytes bytes) { ahead_ += bytes; }
  void received(Bytes bytes) { ahead_ -= bytes; }

  /// What may be sent now by a rank that waits to receive something, before it looks again.
  enum class Receiving : std::uint8_t { kNotBegun, kBegun };
  Bytes allowance(Receiving receiving) const {
    if (receiving == Receiving::kNotBegun || limit_ == kUnlimited) return limit_;
    return std::max(limit_ - ahead_, Bytes(0));
  }

  /// Nothing has come for a while.
  void relent() { limit_ = limit_ < kUnlimited / 2 ? limit_ * 2 : kUnlimited; }

 private:
  Bytes limit_ = kLimit;
  Bytes ahead_;  // sent and not received, in all; negative where more has come
};

}  // namespace peal::engine
