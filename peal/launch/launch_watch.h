// Lets the owner of a launch see how it goes, and end it from outside: the launcher of a submitted
// job writes states, and looks for a request to cancel the job.
#pragma once

#include "peal/base/clock.h"
#include "peal/launch/report.h"

namespace peal::launch {

/// How often `look` is called at least.
inline constexpr Timeout kLookEvery{200};

/// Called by the loop of the launcher, on its thread. The calls must be short.
class LaunchWatch {
 public:
  virtual ~LaunchWatch() = default;
  LaunchWatch() = default;
  LaunchWatch(const LaunchWatch&) = delete;
  LaunchWatch& operator=(const LaunchWatch&) = delete;

  /// All ranks have been ordered to start.
  virtual void started() = 0;
  /// The ranks were warned before the time limit.
  virtual void warned() = 0;
  virtual void ended(const ProcessEnd& end) = 0;
  /// Whether the job must end: then its ranks get SIGTERM, and SIGKILL after the grace.
  virtual bool look() = 0;
};

}  // namespace peal::launch
