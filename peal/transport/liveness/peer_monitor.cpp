#include "peal/transport/liveness/peer_monitor.h"

#include <algorithm>

namespace peal::transport {
void PeerMonitor::observe(const Observation& seen, TimePoint now) {
  const Duration passed = std::min<Duration>(now - looked_, 2 * limits_.every);
  looked_ = now;
  silent_ = seen.beat_received ? Duration{} : silent_ + passed;
  unreachable_ = seen.beat_received || seen.answered ? Duration{} : unreachable_ + passed;
}

Presence PeerMonitor::presence() const {
  const Duration normal = kMissedBeats * Duration(limits_.every);
  if (unreachable_ > normal) {
    return {.state = Presence::State::kUnreachable, .since = unreachable_};
  }
  if (silent_ > normal) return {.state = Presence::State::kSilent, .since = silent_};
  return {.state = Presence::State::kRunning};
}

}  // namespace peal::transport
