// Notices Ctrl-C and a cluster's request to stop, so that a program can save first.
#pragma once

#include <chrono>

#include "peal/system/per_process.h"

namespace peal {

/// The same signal, sent by a process, counts once in this time, because timeout(1) sends it to its
/// child and then to the child's whole process group. A second Ctrl-C counts at once.
inline constexpr std::chrono::milliseconds kOneRequest{1000};

/// While an object lives, the process notes the number of the first SIGINT or SIGTERM. A second
/// signal has the default effect: it ends the process (see also kOneRequest). The first of several
/// objects clears the number. The last restores the default effect.
///
/// A signal that the program ignores or handles itself keeps its effect. A forked child, such as a
/// worker of a data loader, notes nothing, unless it makes an object of its own: the signal has the
/// default effect there.
/// Threads: any.
class StopSignals final {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// 0 if the process has received none.
  int number() const;

 private:
  const OwnerProcess owner_;
};

}  // namespace peal
