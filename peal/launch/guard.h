// The launcher's end of the guard, the process that is the ranks' parent.
#pragma once

#include <optional>
#include <vector>

#include "peal/base/fd.h"
#include "peal/launch/guard_process.h"

namespace peal::launch {

/// Threads: one; and it forks, so make it before the program has a second one. One per program at a
/// time: a second guard would hold the first one's pipes open.
class Guard final {
 public:
  /// Forks the guard, which starts the ranks. `duty.orders` and `.events` are filled in here; the
  /// caller closes its copies of `duty.outputs` afterwards. SIGPIPE must be blocked while a
  /// Guard exists. Errors: resource.
  explicit Guard(GuardDuty duty);
  /// Has everybody who is left killed, and returns when they are.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Readable when there is an event, and at the end.
  int events() const { return events_.get(); }
  /// The next event; nothing when there is none now.
  std::optional<GuardEvent> try_next();
  /// The guard has ended; with no kGone before, it was killed.
  bool has_ended() const { return ended_; }

  void pass_on(int signal, SignalOrigin origin);
  /// Passes `signal` on and kills whoever is still there after the grace.
  void stop(int signal, SignalOrigin origin);
  void kill();

 private:
  void order(const GuardOrder& order);

  Fd orders_;
  Fd events_;
  pid_t pid_ = -1;
  bool ended_ = false;
};

}  // namespace peal::launch
