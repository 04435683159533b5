// The launcher's side of the guard. The guard is a process, the parent of the ranks.
#pragma once

#include <optional>
#include <vector>

#include "peal/launch/guard_process.h"
#include "peal/system/fd.h"

namespace peal::launch {

/// Threads: one. It forks, so create it before the program has a second thread. Only one per
///   program at a time: a second guard would hold the first one's pipes open.
class Guard final {
 public:
  /// Forks the guard, which starts the ranks. Fills in `duty.orders` and `.events`; the caller
  /// closes its copies of `duty.outputs` afterwards. SIGPIPE must be blocked while a Guard exists.
  /// Errors: resource.
  explicit Guard(GuardDuty duty);
  /// Has all remaining processes killed, and returns when they have ended.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Readable when there is an event, and when the guard has ended.
  int events() const { return events_.get(); }
  /// The next event; nothing if no event is waiting.
  std::optional<GuardEvent> try_next();
  /// Whether the guard has ended. Without a kGone event before, the guard was killed.
  bool has_ended() const { return ended_; }

  void pass_on(int signal, SignalOrigin origin);
  /// Passes `signal` on, and kills the processes that remain after the grace.
  void stop(int signal, SignalOrigin origin);
  void kill();

  /// Starts one more rank; needs Starts::kAlsoLater. A kNotStarted event reports failure, and ends
  /// no other rank. The caller closes its copies of `out` and `err` afterwards.
  /// Errors: resource. A guard that has ended ignores the order.
  void start(const RankCommand& command, int out, int err);
  /// Sends a signal to the process group of one rank, if it still runs.
  void signal(Rank rank, int signal);

 private:
  void order(const GuardOrder& order);

  Fd orders_;
  Fd events_;
  pid_t pid_ = -1;
  bool ended_ = false;
};

}  // namespace peal::launch
