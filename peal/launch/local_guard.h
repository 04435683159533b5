// The guard of the processes on this machine: the launcher's side. The guard is a process, the
// parent of the ranks.
#pragma once

#include <optional>
#include <vector>

#include "peal/launch/guard.h"
#include "peal/launch/guard_process.h"
#include "peal/system/fd.h"

namespace peal::launch {

/// Threads: one. It forks, so create it before the program has a second thread. Only one per
///   program at a time: a second guard would hold the first one's pipes open.
class LocalGuard final : public Guard {
 public:
  /// Forks the guard, which starts the ranks. Fills in `duty.orders` and `.events`; the caller
  /// closes its copies of `duty.outputs` afterwards. SIGPIPE must be blocked while a guard exists.
  /// Errors: resource.
  explicit LocalGuard(GuardDuty duty);
  ~LocalGuard() override;

  int events() const override { return events_.get(); }
  std::optional<GuardEvent> try_next() override;
  bool has_ended() const override { return ended_; }
  int orders() const override { return orders_.get(); }
  void pass_on(int signal, SignalOrigin origin) override;
  void stop(int signal, SignalOrigin origin) override;
  void ask_to_stop(int signal, SignalOrigin origin) override;
  void warn() override;
  void kill() override;
  /// Needs Starts::kAlsoLater. The host does not count.
  void start(const RankCommand& command, const StandardFiles& files) override;
  void signal(Rank rank, int signal) override;
  std::string why_lost(Rank /*rank*/) const override { return ""; }  // no such event occurs

 private:
  void order(const GuardOrder& order);

  Fd orders_;
  Fd events_;
  pid_t pid_ = -1;
  bool ended_ = false;
};

}  // namespace peal::launch
