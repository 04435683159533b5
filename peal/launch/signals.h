// The signals that a launcher passes on, as events to poll. Affects the whole process while it
// lives. (StopSignals in system/stop_signals.h is a handler instead, because its users have no loop
// that polls, and a second signal must end them at once.)
#pragma once

#include <signal.h>

#include <optional>

#include "peal/launch/guard_messages.h"
#include "peal/system/fd.h"

namespace peal::launch {

/// Whether the signal asks a launch to end: SIGINT, SIGTERM, SIGHUP or SIGQUIT.
bool ends_a_launch(int signal);

/// Receives SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT, except those
/// that the process ignores (nohup). Blocks SIGPIPE and SIGXFSZ, so that writes fail instead.
/// A launcher makes one object and lends it to all its attempts: a signal between two attempts
/// stays pending until the next look. Threads: created and used by the only thread.
class SignalReader final {
 public:
  SignalReader();
  /// Restores the signal mask; pending signals that were not read are delivered now.
  ~SignalReader();
  SignalReader(const SignalReader&) = delete;
  SignalReader& operator=(const SignalReader&) = delete;

  struct Taken {
    int signal = 0;
    SignalOrigin origin = SignalOrigin::kProcess;
  };
  int fd() const { return fd_.get(); }
  /// Returns nothing if no signal is pending.
  std::optional<Taken> try_next();
  /// For a launcher without ranks: takes all pending signals. Returns the first that ends a launch,
  /// or 0. If none does, a pending SIGTSTP stops this process before the call returns.
  int take_end();
  /// The signal mask before construction.
  const sigset_t& previous_mask() const { return previous_; }

 private:
  sigset_t previous_{};
  Fd fd_;
};

}  // namespace peal::launch
