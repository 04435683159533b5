// Notices Ctrl-C and a cluster's request to stop, so that training can save first.
#pragma once

namespace peal::train {

/// While an object lives, the process notes the number of the last SIGINT or SIGTERM. A second
/// signal of the same number has the default effect: it ends the process. The first of several
/// objects clears the number, and the last restores the handlers.
/// Threads: any.
class StopSignals final {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// 0 if the process has received none.
  int number() const;
};

}  // namespace peal::train
