// The signals that a launcher passes on, as events to poll for. Process-wide while it exists.
#pragma once

#include <signal.h>

#include <optional>

#include "peal/base/fd.h"
#include "peal/launch/guard_messages.h"

namespace peal::launch {

/// Takes SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT, but none that the
/// process ignores (nohup). SIGPIPE and SIGXFSZ are blocked: writes fail instead. Threads: made and
/// used by the only one.
class SignalReader final {
 public:
  SignalReader();
  /// Everything is as before; signals that came and were not read are delivered now.
  ~SignalReader();
  SignalReader(const SignalReader&) = delete;
  SignalReader& operator=(const SignalReader&) = delete;

  struct Taken {
    int signal = 0;
    SignalOrigin origin = SignalOrigin::kProcess;
  };
  int fd() const { return fd_.get(); }
  /// Nothing when there is none now.
  std::optional<Taken> try_next();
  /// The signal mask from before.
  const sigset_t& previous_mask() const { return previous_; }

 private:
  sigset_t previous_{};
  Fd fd_;
};

}  // namespace peal::launch
