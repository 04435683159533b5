// The processes of the workers of an elastic job: their start, their cores and their end by
// signals. Called by driver.cpp.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/cores.h"
#include "peal/launch/elastic/starter.h"
#include "peal/launch/elastic/state.h"
#include "peal/launch/elastic/worker_command.h"
#include "peal/launch/elastic/worker_outputs.h"
#include "peal/launch/options.h"

namespace peal::launch::elastic {

class WorkerProcesses final {
 public:
  /// The arguments must outlive this object.
  WorkerProcesses(const LaunchOptions& options,
                  const WorkerKit& kit,
                  WorkerOutputs& outputs,
                  Starter& starter);

  /// Divides the cores of this machine among this number of workers, and allows the descriptors
  /// that they need. Errors: resource.
  void prepare(int workers);

  /// Starts the process of a worker. `process` is the number by which the guard knows it.
  /// `attempt`: this is the n-th worker on the slot, from 1. Errors: resource.
  void start(const Worker& worker, int process, int attempt);
  /// The worker of the process; nothing if the process has ended.
  std::optional<int> worker_of(int process) const;
  /// Call this when the process of the worker has ended or could not start.
  void ended(int worker);

  /// Sends SIGTERM, and SIGKILL after the grace.
  void stop(int worker);
  /// Sends SIGKILL to workers whose grace is over.
  void kill_late(TimePoint now);

 private:
  struct Process {
    int number = -1;                   // of the guard
    std::optional<std::size_t> share;  // of the cores
    TimePoint killed_from = TimePoint::max();
  };

  CoreShare take_share(Process& process);

  const LaunchOptions& options_;
  const WorkerKit& kit_;
  WorkerOutputs& outputs_;
  Starter& starter_;
  std::map<int, Process> processes_;  // by worker
  std::vector<CoreShare> shares_;
  std::set<std::size_t> used_shares_;
};

}  // namespace peal::launch::elastic
