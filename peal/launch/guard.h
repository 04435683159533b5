// The launcher's control of the processes of a job. A guard starts them, ends them, and reports how
// they ended. Implemented for this machine (local_guard.h) and for other hosts
// (agents/agent_guard.h).
#pragma once

#include <signal.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "peal/launch/guard_messages.h"
#include "peal/launch/rank_command.h"

namespace peal::launch {

/// The standard input and output of a process.
struct StandardFiles {
  int out = -1;  // a pipe end, as `err`
  int err = -1;
  int in = -1;  // -1: the process reads nothing
};

/// Threads: one.
class Guard {
 public:
  /// Kills all remaining processes, and returns when these have ended.
  virtual ~Guard() = default;
  Guard() = default;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Readable when there is an event, and when the guard has ended.
  virtual int events() const = 0;
  /// The next event; nothing if no event is waiting.
  virtual std::optional<GuardEvent> try_next() = 0;
  /// Whether the guard has ended. If no kGone event came before, the guard was killed.
  virtual bool has_ended() const = 0;

  /// A descriptor that is writable when `start` would not block. -1: `start` never blocks.
  virtual int orders() const = 0;

  virtual void pass_on(int signal, SignalOrigin origin) = 0;
  /// Passes `signal` on, and kills the processes that remain after the grace.
  virtual void stop(int signal, SignalOrigin origin) = 0;
  /// The same, but a rank that looks at its stop flag (system/stop_flag.h) gets the flag instead of
  /// SIGTERM, so that it can save first.
  virtual void ask_to_stop(int signal, SignalOrigin origin) = 0;
  /// Sets the stop flags of all processes, also of those that start later.
  virtual void warn() = 0;
  virtual void kill() = 0;

  /// Starts one more process, on `command.host`. The caller closes its copies of `files`
  /// afterwards. Exception: if the process is on another host, `in` must stay open, because the
  /// guard reads it, also ahead of the process. A kNotStarted event reports failure, and ends no
  /// other process. Errors: resource. A guard that has ended ignores the order.
  virtual void start(const RankCommand& command, const StandardFiles& files) = 0;
  /// Sends a signal to the process group of one process, if it still runs.
  virtual void signal(Rank rank, int signal) = 0;
  /// After a kLost event: why the host of the rank is lost.
  virtual std::string why_lost(Rank rank) const = 0;
};

/// Makes a guard.
using GuardMaker = std::function<std::unique_ptr<Guard>()>;

}  // namespace peal::launch
