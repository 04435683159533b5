// Decides whether the rank at the other end of a connection is still there. The inputs are two
// booleans for each look: whether the peer has sent a beat, and whether its system has acknowledged
// all beats of this rank. A pure state machine; heartbeats.h drives one for each connection.
//
// A process that is stopped, or waits for a CPU, sends no beats, but its system acknowledges
// incoming beats. If neither comes, the host or the line is gone.
#pragma once

#include "peal/base/clock.h"
#include "peal/transport/liveness/presence.h"

namespace peal::transport {

struct HeartbeatLimits {
  /// Between two beats.
  Timeout every = std::chrono::milliseconds(100);
  /// How long a host may be unreachable before its ranks are lost.
  Timeout lost_after = std::chrono::milliseconds(800);
  friend bool operator==(const HeartbeatLimits&, const HeartbeatLimits&) = default;
};

/// How many beats may be missing before the peer counts as silent.
inline constexpr int kMissedBeats = 3;

/// Threads: one at a time.
class PeerMonitor {
 public:
  PeerMonitor(const HeartbeatLimits& limits, TimePoint now) : limits_(limits), looked_(now) {}

  /// What a look at the line has found.
  struct Observation {
    bool beat_received = false;  // a beat of the peer has come since the last look
    bool answered = false;       // all bytes that this rank sent are acknowledged
  };

  /// Records a look. If this process was itself stopped or got no CPU, the time without looks does
  /// not count against the peer: of each pause between two looks, at most the time of two beats
  /// counts.
  void observe(const Observation& seen, TimePoint now);

  /// Running, silent or unreachable. Silent after more than three missing beats.
  Presence presence() const;
  /// Whether the peer has been unreachable for too long.
  bool is_lost() const { return unreachable_ >= limits_.lost_after; }

 private:
  HeartbeatLimits limits_;
  TimePoint looked_;
  Duration silent_{};       // since the last beat of the peer
  Duration unreachable_{};  // since its last beat or acknowledgement
};

}  // namespace peal::transport
