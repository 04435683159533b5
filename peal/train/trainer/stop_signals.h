// Notices Ctrl-C and a cluster's request to stop, so that training can save first.
#pragma once

#include <csignal>

namespace peal::train {

/// While this object lives, the first SIGINT or SIGTERM sets a flag. A second one has the
/// default effect: it ends the process. One object at a time in a process.
/// Threads: made and destroyed by one thread.
class StopSignals final {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool received() const;

 private:
  struct sigaction interrupt_before_ = {};
  struct sigaction terminate_before_ = {};
};

}  // namespace peal::train
