#include "peal/launch/process_end.h"

#include <signal.h>
#include <sys/wait.h>

#include <fmt/format.h>

#include "peal/launch/signals.h"
#include "peal/system/process_state.h"

namespace peal::launch {
namespace {

/// For a SIGKILL that the launcher did not send: the memory may have run out.
std::string hint(const ProcessEnd& end) {
  if (!WIFSIGNALED(end.status) || WTERMSIG(end.status) != SIGKILL || end.out_of_memory) return "";
  return " (not by the launcher; when memory runs out, the kernel does this, and dmesg shows it)";
}

observe::RankEnd::State state_of(const ProcessEnd& end) {
  using State = observe::RankEnd::State;
  if (end.ended_by == EndedBy::kItself)
    return WIFSIGNALED(end.status) ? State::kKilled
           : failed(end.status)    ? State::kEndedBadly
                                   : State::kEndedWell;
  return end.was_stopped ? State::kEndedWhileStopped : State::kEndedByLauncher;
}

std::string state_text(const ProcessEnd& end) {
  if (end.ended_by == EndedBy::kItself) return status_text(end);
  if (end.was_stopped) return "was stopped by a signal until the launcher ended it";
  if (end.ended_by == EndedBy::kKill) return "was killed by the launcher";
  if (ended_as_requested(end)) return "was ended by the launcher";
  return describe_wait_status(end.status) + ", after the launcher asked it to end";
}

}  // namespace

int shell_code(int status) {
  return WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

bool ended_as_requested(const ProcessEnd& end) {
  const int code = shell_code(end.status);
  return code == 0 || ends_a_launch(code - kSignalBase);
}

bool failed(int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; }

std::string status_text(const ProcessEnd& end) {
  std::string text = describe_wait_status(end.status);
  if (!end.out_of_memory) return text;
  if (!end.out_of_memory->limit) return text + ": out of memory (of the machine)";
  const double mebibytes = static_cast<double>(end.out_of_memory->limit->value) / (1 << 20);
  const bool is_large = mebibytes >= 1024;
  return fmt::format("{}: out of memory (limit {:.1f} {} of its cgroup)",
                     text,
                     is_large ? mebibytes / 1024 : mebibytes,
                     is_large ? "GiB" : "MiB");
}

std::string how_it_ended(const ProcessEnd& end) { return status_text(end) + hint(end); }

bool failed_by_itself(const ProcessEnd& end) {
  return end.ended_by == EndedBy::kItself && failed(end.status);
}

std::optional<OutOfMemory> out_of_memory(const EndDetail& detail) {
  if (detail.out_of_memory == 0) return std::nullopt;
  OutOfMemory memory;
  if (detail.memory_limit > 0) memory.limit = Bytes(detail.memory_limit);
  return memory;
}

observe::RankEnd record_of(const ProcessEnd& end, observe::WallTime at) {
  return {.rank = end.rank,
          .pid = static_cast<std::uint64_t>(end.pid),
          .at = at,
          .state = state_of(end),
          .text = state_text(end)};
}

}  // namespace peal::launch
