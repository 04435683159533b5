// What asks a process to stop, so that it can save and end by itself: its launcher, before a time
// limit or at the end of a job, or a signal. `ProcessGroup::should_stop` makes the ranks agree.
#pragma once

#include <optional>
#include <string>

#include "peal/system/per_process.h"
#include "peal/system/stop_flag.h"
#include "peal/system/stop_signals.h"

namespace peal {

/// While an object lives, a request to stop does not end this process: the launcher sends no
/// SIGTERM, and a SIGINT or SIGTERM from elsewhere is only noted (stop_signals.h).
/// Threads: any.
class StopRequests final {
 public:
  /// `flag`: the path of the flag that the launcher sets (PEAL_STOP_FLAG); empty: no flag.
  explicit StopRequests(const std::string& flag);
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;

  /// Whether this process was asked. A request of the launcher stays. Cost: two reads of memory.
  bool has_come() const;
  /// SIGINT or SIGTERM, if one was noted or the launcher has replaced it; else 0.
  int signal() const;

 private:
  const OwnerProcess owner_;
  StopSignals signals_;  // before flag_: until the guard uses the flag, it sends SIGTERM
  std::optional<StopFlag> flag_;
};

}  // namespace peal
