#include "peal/transport/pulse.h"

#include <algorithm>

namespace peal::transport {
void Pulse::look(const Look& look, TimePoint now) {
  const Duration passed = std::min<Duration>(now - looked_, 2 * limits_.every);
  looked_ = now;
  silent_ = look.heard ? Duration{} : silent_ + passed;
  unreachable_ = look.heard || look.answered ? Duration{} : unreachable_ + passed;
}

Presence Pulse::presence() const {
  const Duration normal = kMissedBeats * Duration(limits_.every);
  if (unreachable_ > normal) {
    return {.state = Presence::State::kUnreachable, .since = unreachable_};
  }
  if (silent_ > normal) return {.state = Presence::State::kSilent, .since = silent_};
  return {.state = Presence::State::kRunning};
}

}  // namespace peal::transport
