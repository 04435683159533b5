// One run of the discovery script after the other, as processes of the job. Called by driver.cpp.
#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/guard.h"
#include "peal/launch/host_list.h"
#include "peal/launch/rank_command.h"
#include "peal/system/fd.h"

namespace peal::launch::elastic {

class DiscoveryRun final {
 public:
  /// `script`: a command for the shell, as for horovodrun. `slots`: of hosts without a number.
  DiscoveryRun(std::string script, int slots, Variables environment, Guard& guard);

  /// Starts the script if a second has passed since its last start, and it does not run. Ends it if
  /// it runs for more than a minute. `process` is the number for the next process, if it starts;
  /// returns whether it does.
  bool advance(TimePoint now, int process);

  /// To be polled and read.
  void add_to(std::vector<pollfd>& entries) const;
  void read_some();

  bool is_own(int process) const { return process_ == process; }

  /// The hosts that the script has found, or why there are none.
  struct Result {
    std::vector<HostSlots> hosts{};
    std::string problem{};  // empty: none
  };
  /// To be called when the process has ended. `status` as waitpid(2) gives it.
  Result end(int status);
  /// As above, for a process that could not be started.
  Result end_without_start(int error);

 private:
  /// The text that a process writes into a pipe.
  struct Capture {
    Fd reader{};
    std::string text{};
    void read_some();
  };

  const std::string script_;
  const int slots_;
  const Variables environment_;
  Guard& guard_;
  Capture out_;
  Capture err_;
  std::optional<int> process_;
  TimePoint started_{};
  bool is_killed_ = false;
};

}  // namespace peal::launch::elastic
