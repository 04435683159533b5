// The signals that a launcher passes on, as events to poll. Affects the whole process while it
// lives.
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
/// Threads: created and used by the only thread.
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
  /// The signal mask before construction.
  const sigset_t& previous_mask() const { return previous_; }

 private:
  sigset_t previous_{};
  Fd fd_;
};

}  // namespace peal::launch
