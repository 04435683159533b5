// The state and the parent of a process of this machine, from /proc. Used for errors about a silent
// peer, and for folders of dead processes. `peal why` uses it for ranks whose record has no end,
// and ranks use it to find the owner of a record. Also describes how a process has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace peal {

enum class ProcessState : unsigned char {
  kUnknown,  // the process cannot be examined
  kRunning,  // runs or sleeps
  kStopped,  // stopped by a signal or a debugger, until it is resumed
  kZombie,   // has ended, but its parent has not read the exit code yet
  kMissing,  // has ended, or is not visible here
};

/// The state of the process with this number. Source: proc(5).
ProcessState state_of_process(std::int64_t pid);

/// Whether `ancestor` is the parent of `pid`, or the parent of its parent, and so on. False if
/// either process has ended. Source: proc(5).
bool is_ancestor(std::int64_t ancestor, std::int64_t pid);

/// When the process was started, in clock ticks since the machine was started. With the number,
/// this identifies a process until the machine starts again: a later process may get the same
/// number. Nothing if the process has ended (even if nobody has read its exit code), or cannot be
/// examined. Source: proc(5).
std::optional<std::uint64_t> start_time_of_process(std::int64_t pid);

/// "SIGKILL"; "signal 99" if it has no name.
std::string signal_name(int signal);

/// "ended with exit code 3", "was killed by SIGKILL": describes a status from waitpid(2).
std::string describe_wait_status(int status);

}  // namespace peal
