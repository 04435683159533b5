// Why a job has not ended well: one vocabulary for launchers, engines, records and `peal status`.
// It tells failures of the program from failures of the engine.
#pragma once

#include <iosfwd>
#include <optional>
#include <string_view>

#include "peal/launch/report.h"

namespace peal::launch {

enum class EndCause : unsigned char {
  kProgram,      // a process ended with an exit code other than 0
  kSignal,       // a process was killed by a signal that the launcher did not send
  kOutOfMemory,  // the kernel or the engine killed a process because memory ran out
  kTimeLimit,    // the job has reached its time limit
  kCancelled,    // a user, or a signal to the launcher, asked the job to end
  kHostLost,     // a host was lost, or the engine took it away
  kPreempted,    // the engine took the hosts away for a job with a higher priority
  kNotStarted,   // a process could not start: no host, image or command
  kEngine,       // another failure of the engine or of the launcher
};

/// "program", "signal", "out_of_memory", "time_limit", "cancelled", "host_lost", "preempted",
/// "not_started", "engine": as in JSON.
std::string_view name_of(EndCause cause);
std::optional<EndCause> try_parse_cause(std::string_view name);
std::ostream& operator<<(std::ostream& out, EndCause cause);

/// Why a process failed. Pure.
EndCause cause_of(const ProcessEnd& failure);

/// Why a launch failed: of several failures, the main one (report.h). Nothing if all went well.
/// Pure.
std::optional<EndCause> cause_of(const LaunchReport& report);

}  // namespace peal::launch
