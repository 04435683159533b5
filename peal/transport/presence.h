// What a rank knows of a peer's process at this moment, beside what its streams tell: so that
// errors can say whether who is missing is late, stopped or gone.
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
    kRunning,      // its process says so, or its host's other processes see it run
    kStopped,      // by a signal or a debugger; it goes on when it is told to
    kSilent,       // its system answers, and its process says nothing: stopped, or gets no CPU
    kUnreachable,  // its system does not answer either: the host or the line is gone
    kDamaged,      // what comes from it is not what it sent
    kEnded,        // its process has ended
  };

  State state = State::kUnknown;
  Duration since{};  // how long it has been silent or unreachable

  friend bool operator==(const Presence&, const Presence&) = default;
};

/// Continues "rank 2 (pid 7 on b)": "stands still (its process is stopped, by a signal or a
/// debugger)"; empty where nothing is known.
std::string describe(const Presence& presence);

/// What poll(2) is to watch for on a descriptor that ends with a process: a pidfd, or a connection
/// on which it says nothing.
inline constexpr short kProcessEnds = POLLIN | POLLRDHUP;

/// Whether the process of such a descriptor has ended.
bool has_ended(int descriptor);

/// Of a process of this machine, by its number as it is seen here: from /proc. Unknown for 0.
Presence presence_of_process(std::int64_t pid);

}  // namespace peal::transport
