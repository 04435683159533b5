// The guard of the processes of an elastic job, whose hosts come and go. Used by driver.cpp;
// implemented by agents/elastic_guard.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peal/launch/cores.h"
#include "peal/launch/guard.h"
#include "peal/launch/guard_process.h"
#include "peal/launch/rank_command.h"

namespace peal::launch {

/// What the driver must know about a host to start workers there.
struct HostFacts {
  std::string program{};                 // the path of the command
  std::vector<std::string> arguments{};  // with an interpreter, if the script needs one
  Variables environment{};               // of its processes, without the variables of the job
  std::vector<Core> cores{};
  std::optional<double> quota{};  // CPUs, if a cgroup limits the time
  std::string machine{};          // hosts with the same text share their cores
  std::string launcher{};  // the address of the launcher as the host sees it; empty: not known
  std::optional<std::string> records{};  // the folder for records; nothing: that of the launcher
};

/// A host that has become ready, cannot be used, or is lost.
struct HostEvent {
  enum class Kind : unsigned char { kReady, kRefused, kLost };
  Kind kind = Kind::kReady;
  std::string host{};
  HostFacts facts{};      // if it is ready
  std::string problem{};  // otherwise
  int exit_code = 1;      // that a shell would give for the problem
};

/// A guard whose processes run on hosts with which it is connected. A process without a host runs
/// on this machine.
class HostGuard : public Guard {
 public:
  /// Begins to connect with a host that is not connected. Does not block.
  virtual void connect(const std::string& host) = 0;
  /// Ends the connection. No event follows. Processes that still run there are ended.
  virtual void leave(const std::string& host) = 0;
  /// The next change of a host, or nothing. Call it after `try_next`, which returns
  /// the processes that were lost with a host.
  virtual std::optional<HostEvent> try_next_host() = 0;
  /// Removes the records of a round on all hosts with a private folder for them.
  virtual void forget_round(int round) = 0;
};

/// Makes the guard of a job.
using HostGuardMaker = std::function<std::unique_ptr<HostGuard>(GuardDuty)>;

}  // namespace peal::launch
