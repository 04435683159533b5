#include "peal/launch/end_cause.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <ostream>

namespace peal::launch {
namespace {

constexpr std::array kCauses = {EndCause::kProgram,
                                EndCause::kSignal,
                                EndCause::kOutOfMemory,
                                EndCause::kTimeLimit,
                                EndCause::kCancelled,
                                EndCause::kHostLost,
                                EndCause::kPreempted,
                                EndCause::kNotStarted,
                                EndCause::kEngine};

}  // namespace

std::string_view name_of(EndCause cause) {
  switch (cause) {
    case EndCause::kProgram:
      return "program";
    case EndCause::kSignal:
      return "signal";
    case EndCause::kOutOfMemory:
      return "out_of_memory";
    case EndCause::kTimeLimit:
      return "time_limit";
    case EndCause::kCancelled:
      return "cancelled";
    case EndCause::kHostLost:
      return "host_lost";
    case EndCause::kPreempted:
      return "preempted";
    case EndCause::kNotStarted:
      return "not_started";
    case EndCause::kEngine:
      break;
  }
  return "engine";
}

std::optional<EndCause> try_parse_cause(std::string_view name) {
  const auto found =
      std::ranges::find(kCauses, name, [](EndCause cause) { return name_of(cause); });
  if (found == kCauses.end()) return std::nullopt;
  return *found;
}

std::ostream& operator<<(std::ostream& out, EndCause cause) { return out << name_of(cause); }

EndCause cause_of(const ProcessEnd& failure) {
  if (!failure.lost.empty()) return EndCause::kHostLost;
  if (failure.container_start != ContainerStart::kDone) return EndCause::kNotStarted;
  if (failure.out_of_memory) return EndCause::kOutOfMemory;
  return WIFSIGNALED(failure.status) ? EndCause::kSignal : EndCause::kProgram;
}

std::optional<EndCause> cause_of(const LaunchReport& report) {
  if (exit_code(report) == 0) return std::nullopt;
  if (report.start_failure) return EndCause::kNotStarted;
  if (report.guard_lost) return EndCause::kEngine;
  if (report.time_limit) return EndCause::kTimeLimit;
  if (report.was_cancelled) return EndCause::kCancelled;
  if (const ProcessEnd* const main = main_failure(report)) return cause_of(*main);
  if (report.signal != 0 || handled_signal(report) != 0) return EndCause::kCancelled;
  return EndCause::kEngine;  // output is missing
}

}  // namespace peal::launch
