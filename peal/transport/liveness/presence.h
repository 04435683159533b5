// The state of a peer's process, as far as a rank knows it now, in addition to the peer's streams.
// So errors can say whether a missing peer is late, stopped or gone.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>

#include "peal/base/clock.h"

namespace peal::transport {

/// A value.
struct Presence {
  enum class State : std::uint8_t {
    kUnknown,
    kRunning,      // by its own beats, or as other processes of its host see it
    kStopped,      // by a signal or a debugger, until it is continued
    kSilent,       // its system answers, its process does not: stopped, or without CPU
    kUnreachable,  // its system does not answer either: the host or the line is gone
    kDamaged,      // the bytes that arrive are not the bytes that it sent
    kEnded,        // its process has ended
  };

  State state = State::kUnknown;
  Duration since{};  // how long it has been silent or unreachable

  friend bool operator==(const Presence&, const Presence&) = default;
};

/// Continues "rank 2 (pid 7 on b)": "is stopped (by a signal or a debugger)"; empty if nothing is
/// known.
std::string describe(const Presence& presence);

/// What poll(2) must watch for on a descriptor that reports the end of a process: a pidfd, or a
/// connection without traffic.
inline constexpr short kProcessEnds = POLLIN | POLLRDHUP;

/// Whether the process behind such a descriptor has ended.
bool has_ended(int descriptor) noexcept;

/// The presence of a process of this machine, from /proc. `pid` as seen here; unknown for 0.
Presence presence_of_process(std::int64_t pid);

}  // namespace peal::transport
