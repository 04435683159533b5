// Whether a process of this machine runs, as /proc tells it. Used by transport, for errors that say
// what a silent peer is doing, and for folders whose owners are dead,
// and by `peal why` for ranks that have left no end.
#pragma once

#include <cstdint>

namespace peal {

enum class ProcessState : unsigned char {
  kUnknown,  // it cannot be looked at
  kRunning,  // or sleeps
  kStopped,  // by a signal or a debugger; it goes on when it is told to
  kZombie,   // has ended: whoever started it has only not asked for its exit code yet
  kMissing,  // has ended, or is not to be seen from here
};

/// By its number as it is seen here. Source: proc(5).
ProcessState state_of_process(std::int64_t pid);

}  // namespace peal
