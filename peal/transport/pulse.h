// Whether the rank at the other end of a line is still there: decided from when its system
// acknowledged a beat of ours and when its process sent one, by a pure state machine that
// heartbeats.h drives for each line.
//
// A process that is stopped, or waits for a CPU, sends no beats; but its system acknowledges ours.
// Only where neither comes is the host or the line gone.
#pragma once

#include "peal/base/clock.h"
#include "peal/transport/presence.h"

namespace peal::transport {

struct PulseLimits {
  /// Between two beats.
  Timeout every = std::chrono::milliseconds(100);
  /// For so long a host may be unreachable before its ranks are lost.
  Timeout lost_after = std::chrono::milliseconds(800);
  friend bool operator==(const PulseLimits&, const PulseLimits&) = default;
};

/// How many beats may be missing without a word.
inline constexpr int kMissedBeats = 3;

/// Threads: one at a time.
class Pulse {
 public:
  Pulse(const PulseLimits& limits, TimePoint now) : limits_(limits), looked_(now) {}

  /// What a look at the line has found.
  struct Look {
    bool heard = false;     // a beat of the peer's has come since the last look
    bool answered = false;  // nothing of ours is unacknowledged
  };

  /// Takes a look into account. Time in which nobody looked, since this process was stopped or got
  /// no CPU itself, is not held against the peer: of each pause between two looks only so much
  /// counts as two of them may be apart.
  void look(const Look& look, TimePoint now);

  /// Running, silent or unreachable. Silent from when three beats and more are missing.
  Presence presence() const;
  /// Whether the peer is to be given up.
  bool is_lost() const { return unreachable_ >= limits_.lost_after; }

 private:
  PulseLimits limits_;
  TimePoint looked_;
  Duration silent_{};       // since the peer's last beat
  Duration unreachable_{};  // since its last beat or acknowledgement
};

}  // namespace peal::transport
