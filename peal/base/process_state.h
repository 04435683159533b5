// What /proc says of a process of this machine: whether it runs, and its parent. Used for errors
// that say what a silent peer is doing, for folders whose owners are dead, by `peal why` for ranks
// that have left no end, and by ranks for the owner of a record.
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

/// Whether `ancestor` is the parent of `pid`, or the parent of its parent, and so on. False if
/// either has ended. Source: proc(5).
bool is_ancestor(std::int64_t ancestor, std::int64_t pid);

}  // namespace peal
