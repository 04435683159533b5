// Where the processes of an elastic job run. The only implementation starts them on this machine,
// under the guard (guard.h). One that reaches other hosts goes here. Called by driver.cpp.
#pragma once

#include <map>
#include <string>

#include "peal/launch/guard.h"
#include "peal/launch/rank_command.h"

namespace peal::launch::elastic {

class Starter {
 public:
  virtual ~Starter() = default;

  /// Why no process can start on the host, and what to do. Empty: a process can start. Only the
  /// first call for a name may ask the name service.
  virtual std::string problem_with(const std::string& host) = 0;
  /// Starts a process on a host without a problem. `command.rank` is the number of the process,
  /// also in the guard's events. The caller closes its copies of `out` and `err` afterwards.
  /// Errors: resource.
  virtual void start(const std::string& host, const RankCommand& command, int out, int err) = 0;
  /// Sends a signal to the process and its group, if it still runs.
  virtual void signal(int process, int signal) = 0;
};

/// Reaches only this machine.
class LocalStarter final : public Starter {
 public:
  explicit LocalStarter(Guard& guard) : guard_(guard) {}
  std::string problem_with(const std::string& host) override;
  void start(const std::string& /*host*/, const RankCommand& command, int out, int err) override {
    guard_.start(command, out, err);
  }
  void signal(int process, int signal) override { guard_.signal(process, signal); }

 private:
  Guard& guard_;
  std::map<std::string, std::string> problems_;  // of the hosts that were asked for
};

}  // namespace peal::launch::elastic
