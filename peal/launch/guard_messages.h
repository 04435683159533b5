// The messages between the launcher and its guard: plain structs, each written and read whole.
// Orders go through a unix socket, because an order to start a rank carries descriptors; events
// through a pipe (they are far smaller than PIPE_BUF). Both ends are the same program.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/launch/rank_command.h"

namespace peal::launch {

/// Whether the container of a rank has started.
enum class ContainerStart : std::int32_t {
  kDone,         // or the rank has no container
  kFailed,       // the next attempt would fail, too
  kInterrupted,  // the engine's command was killed
};

/// What the wait status of a process does not tell.
struct EndDetail {
  std::int32_t out_of_memory = 0;  // 1 if the kernel killed it because memory ran out
  ContainerStart container_start = ContainerStart::kDone;
  std::int64_t memory_limit =
      0;  // of out_of_memory: the bytes that its cgroup may use; 0: no limit
  friend bool operator==(const EndDetail&, const EndDetail&) = default;
};

/// The variable of a process with RankCommand::after_end: the number of a pipe end. The process may
/// write one EndDetail there. The process must not pass the pipe on to the user's program, because
/// the program could report a false end.
inline constexpr const char* kEndPipeVariable = "PEAL_END_PIPE";

/// From the guard to the launcher.
struct GuardEvent {
  enum class Kind : std::int32_t {
    kNotStarted,  // rank, value: errno
    kAfterEnd,    // rank, pid: of RankCommand::after_end, which also outlives the guard
    kStopped,     // rank, pid: the process was stopped by a signal when the launcher ended it
    kEnded,       // rank, pid, value: as waitpid(2) gives it
    kLost,        // rank: its host was lost; the rank may still run there
    kGone,        // no process is left, and the guard ends; value: processes that survived SIGKILL
  };
  Kind kind = Kind::kGone;
  Rank rank = -1;
  pid_t pid = 0;
  std::int32_t value = 0;
  EndDetail detail{};  // kEnded
};

/// Which processes have received a signal already.
enum class SignalOrigin : std::int32_t {
  kProcess,   // only the launcher: kill(1) on it
  kTerminal,  // every process in the terminal's foreground process group: Ctrl-C
};

/// From the launcher to the guard.
struct GuardOrder {
  enum class Kind : std::int32_t {
    kPassOn,  // signal
    kStop,    // signal; processes that remain after the grace are killed
    kAsk,     // the same, but ranks that look at their stop flag get the flag instead of SIGTERM
    kWarn,    // sets the stop flags
    kKill,
    kSignal,  // rank, signal
    kStart,   // rank, size; then `size` bytes of a RankCommand, and its stdout, stderr and stdin
  };
  Kind kind = Kind::kKill;
  std::int32_t signal = 0;
  SignalOrigin origin = SignalOrigin::kProcess;
  Rank rank = -1;
  std::uint32_t size = 0;
  std::uint32_t descriptors = 2;  // 2: the process reads nothing
};

/// How long the rest of an order may take.
inline constexpr Timeout kOrderLimit{10'000};

/// Errors of decode: mismatch.
std::string encode(const RankCommand& command);
RankCommand decode_command(std::string_view bytes);

}  // namespace peal::launch
