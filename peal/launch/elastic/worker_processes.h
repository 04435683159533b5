// The processes of the workers of an elastic job: their start, their cores and their end by
// signals. Called by driver.cpp.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/cores.h"
#include "peal/launch/elastic/host_guard.h"
#include "peal/launch/elastic/state.h"
#include "peal/launch/elastic/worker_command.h"
#include "peal/launch/elastic/worker_outputs.h"
#include "peal/launch/options.h"

namespace peal::launch::elastic {

class WorkerProcesses final {
 public:
  /// The arguments must outlive this object.
  WorkerProcesses(const LaunchOptions& options, WorkerOutputs& outputs, Guard& guard);

  /// Divides the cores of a machine among this number of workers, unless workers run there.
  void divide(const HostFacts& facts, int workers);

  /// Starts the process of a worker on a machine whose cores are divided. `process` is the number
  /// by which the guard knows it. `attempt`: this is the n-th worker on the slot, from 1.
  /// Errors: resource.
  void start(const Worker& worker, const WorkerKit& kit, int process, int attempt);
  /// The worker of the process; nothing if the process has ended.
  std::optional<int> worker_of(int process) const;
  /// The guard's number for the process of a worker that has one.
  int process_of(int worker) const { return processes_.at(worker).number; }
  /// Call this when the process of the worker has ended or could not start.
  void ended(int worker);

  /// Sends SIGTERM, and SIGKILL after the grace.
  void stop(int worker);
  /// Sends SIGKILL to workers whose grace is over.
  void kill_late(TimePoint now);

 private:
  struct Process {
    int number = -1;        // of the guard
    std::string machine{};  // whose cores it uses
    std::optional<std::size_t> share{};
    TimePoint killed_from = TimePoint::max();
  };
  /// The cores of a machine.
  struct Cores {
    std::vector<CoreShare> shares{};
    std::set<std::size_t> used{};
  };

  CoreShare take_share(Process& process);

  const LaunchOptions& options_;
  WorkerOutputs& outputs_;
  Guard& guard_;
  std::map<int, Process> processes_;    // by worker
  std::map<std::string, Cores> cores_;  // by machine
};

}  // namespace peal::launch::elastic
