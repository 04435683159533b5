#include "peal/transport/liveness/presence.h"

#include <poll.h>

#include <fmt/format.h>

#include "peal/system/process_state.h"

namespace peal::transport {
namespace {

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

std::string describe(const Presence& presence) {
  switch (presence.state) {
    case Presence::State::kUnknown:
      return "";
    case Presence::State::kRunning:
      return "is alive";
    case Presence::State::kStopped:
      return "is stopped (by a signal or a debugger)";
    case Presence::State::kSilent:
      return fmt::format(
          "is stopped or gets no CPU: its host answers, but its process has "
          "sent nothing for {:.1f} s",
          seconds(presence.since));
    case Presence::State::kUnreachable:
      return fmt::format("has not been reachable for {:.1f} s: its host or the line to it is gone",
                         seconds(presence.since));
    case Presence::State::kDamaged:
      return "is behind a damaged line: the bytes that arrive are not the bytes that were sent";
    case Presence::State::kEnded:
      return "has ended";
  }
  return "";
}

bool has_ended(int descriptor) noexcept {
  pollfd entry{descriptor, kProcessEnds, 0};
  return ::poll(&entry, 1, 0) > 0;
}

Presence presence_of_process(std::int64_t pid) {
  if (pid <= 0) return {};
  switch (state_of_process(pid)) {
    case ProcessState::kUnknown:
      return {};
    case ProcessState::kRunning:
      return {.state = Presence::State::kRunning};
    case ProcessState::kStopped:
      return {.state = Presence::State::kStopped};
    case ProcessState::kZombie:
    case ProcessState::kMissing:
      return {.state = Presence::State::kEnded};
  }
  return {};
}

}  // namespace peal::transport
