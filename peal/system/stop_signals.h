// Notices Ctrl-C and a cluster's request to stop, so that a program can save first.
#pragma once

#include <signal.h>

#include <chrono>
#include <initializer_list>

#include "peal/base/clock.h"
#include "peal/system/per_process.h"

namespace peal {

/// A signal that asks the process to stop.
struct StopSignal {
  int number = 0;
  bool is_of_terminal = false;
  TimePoint at;
};

/// How long signals of a process count as one request: see is_repeated.
inline constexpr std::chrono::milliseconds kOneRequest{1000};

/// Whether `next` repeats the request of `last`: the same signal, sent by a process, within
/// kOneRequest. timeout(1) sends its signal to its child and then to the child's whole process
/// group. A second Ctrl-C is always a new request, because a user may press it at once.
constexpr bool is_repeated(const StopSignal& last, const StopSignal& next) {
  return next.number == last.number && !next.is_of_terminal && next.at < last.at + kOneRequest;
}

/// While an object lives, the process notes the number of the first SIGINT or SIGTERM, or the first
/// of `signals`. A second request (see is_repeated) has the default effect: it ends the process.
/// Exception: SIGHUP is never a second request, because a terminal that is closed and its shell
/// both send it. The first of several objects clears the number, and its arguments count. The last
/// restores the default effect.
///
/// A signal that the program ignores or handles itself keeps its effect. A forked child, such as a
/// worker of a data loader, notes nothing, unless it makes an object of its own: the signal has the
/// default effect there.
/// Threads: any.
class StopSignals final {
 public:
  /// `at_ctrl_c`: is written to stderr when SIGINT is noted; null: nothing. Must live as long as
  /// the object.
  explicit StopSignals(std::initializer_list<int> signals = {SIGINT, SIGTERM},
                       const char* at_ctrl_c = nullptr);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// 0 if the process has received none.
  int number() const;

 private:
  const OwnerProcess owner_;
};

}  // namespace peal
