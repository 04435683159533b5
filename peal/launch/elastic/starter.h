// Where the processes of an elastic job run. The only implementation starts them on this machine,
// under the guard (guard.h). One that reaches other hosts goes here. Called by driver.cpp.
#pragma once

#include <string>

#include "peal/base/error.h"
#include "peal/launch/guard.h"
#include "peal/launch/rank_command.h"

namespace peal::launch::elastic {

class Starter {
 public:
  virtual ~Starter() = default;

  /// Starts a process on `host`. `command.rank` is its number, in the guard's events too. The
  /// caller closes its copies of `out` and `err` afterwards.
  /// Errors: unsupported (the host cannot be reached by this starter), resource.
  virtual void start(const std::string& host, const RankCommand& command, int out, int err) = 0;
  /// Sends a signal to the process and its group, if it still runs.
  virtual void signal(int process, int signal) = 0;
};

/// Throws unsupported for hosts that are not this machine.
class LocalStarter final : public Starter {
 public:
  explicit LocalStarter(Guard& guard) : guard_(guard) {}
  void start(const std::string& host, const RankCommand& command, int out, int err) override;
  void signal(int process, int signal) override { guard_.signal(process, signal); }

 private:
  Guard& guard_;
};

/// unsupported: "h2 is not this machine: ..."
Error remote_host_error(const std::string& host);

}  // namespace peal::launch::elastic
