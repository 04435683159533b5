// Notices Ctrl-C and a cluster's request to stop, so that training can save first.
#pragma once

namespace peal::train {

/// While an object lives, the first SIGINT or SIGTERM sets a flag of the process. A second signal
/// of the same number has the default effect: it ends the process. The first of several objects
/// clears the flag, and the last restores the handlers.
/// Threads: any.
class StopSignals final {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool received() const;
};

}  // namespace peal::train
