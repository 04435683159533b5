// How the process of a rank ended: a value, and its text. Made by the launcher from the events of
// the guard, used in reports and records.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/launch/guard_messages.h"
#include "peal/observe/rank_end.h"

namespace peal::launch {

/// The launcher's part in the end of a rank.
enum class EndedBy : unsigned char {
  kItself,   // none: the rank ended by itself
  kRequest,  // the launcher asked it to end
  kKill,     // the launcher asked it to end, and killed it after the grace or a second signal
};

/// The kernel has killed a process because memory ran out.
struct OutOfMemory {
  std::optional<Bytes> limit{};  // of the cgroup of the process; nothing: only that of the machine
  friend bool operator==(const OutOfMemory&, const OutOfMemory&) = default;
};

/// How the process of a rank ended.
struct ProcessEnd {
  Rank rank = 0;
  pid_t pid = 0;
  int status = 0;    // as waitpid(2) gives it
  Duration after{};  // since the start
  EndedBy ended_by = EndedBy::kItself;
  bool was_stopped = false;  // stopped by a signal when the launcher asked it to end
  std::optional<OutOfMemory> out_of_memory{};
  ContainerStart container_start = ContainerStart::kDone;
  std::string host{};  // of a job on several hosts
  std::string lost{};  // why the host was lost; then the status is not known, and counts as SIGKILL
  std::vector<std::string> last_lines{};  // of its output, if it failed by itself
  friend bool operator==(const ProcessEnd&, const ProcessEnd&) = default;
};

/// What shells add to the number of a signal that ended a process.
inline constexpr int kSignalBase = 128;

/// As a guard has reported it.
std::optional<OutOfMemory> out_of_memory(const EndDetail& detail);

/// Whether the wait status is anything but exit(0).
bool failed(int status);

/// The exit code that a shell gives for a wait status.
int shell_code(int status);

/// The end as it is stored for `peal why` and for the rank's peers, beside its flight.
observe::RankEnd record_of(const ProcessEnd& end, observe::WallTime at);

/// "ended with exit code 3", "was killed by SIGKILL: out of memory (limit 2.0 GiB of its cgroup)".
std::string status_text(const ProcessEnd& end);

/// The same, with a hint for a SIGKILL that nothing explains. For ranks that failed by themselves.
std::string how_it_ended(const ProcessEnd& end);

/// Whether the rank ended as requested: with exit code 0, or by the signal, handled or not.
bool ended_as_requested(const ProcessEnd& end);

/// Whether the rank failed before the launcher asked it to end.
bool failed_by_itself(const ProcessEnd& end);

}  // namespace peal::launch
