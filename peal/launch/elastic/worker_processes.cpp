#include "peal/launch/elastic/worker_processes.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "peal/system/open_files.h"

namespace peal::launch::elastic {
namespace {

/// Two pipes with both ends, two logs, connections to the store, and a reserve.
constexpr long kFilesOfAWorker = 16;
/// Of the agents, and of all others.
constexpr long kFilesOfOthers = 256;

/// "localhost-0"; of the second worker on this slot "localhost-0.2".
std::string log_name(const Worker& worker, int attempt) {
  const std::string slot = fmt::format("{}-{}", worker.host, worker.slot);
  return attempt == 1 ? slot : fmt::format("{}.{}", slot, attempt);
}

}  // namespace

WorkerProcesses::WorkerProcesses(const LaunchOptions& options, WorkerOutputs& outputs, Guard& guard)
    : options_(options), outputs_(outputs), guard_(guard) {}

void WorkerProcesses::divide(const HostFacts& facts, int workers) {
  Cores& cores = cores_[facts.machine];
  if (cores.used.empty()) cores.shares = divide_cores(facts.cores, workers, facts.quota);
}

void WorkerProcesses::start(const Worker& worker, const WorkerKit& kit, int process, int attempt) {
  allow_open_files(kFilesOfOthers + kFilesOfAWorker * (std::ssize(processes_) + 1),
                   "one more worker");
  Process& own = processes_[worker.number];
  own.number = process;
  own.machine = kit.machine;
  const RankCommand command = worker_command(options_, kit, worker, process, take_share(own));
  const WorkerWriters writers =
      outputs_.add(worker.number, name_of(worker), log_name(worker, attempt));
  guard_.start(command, {writers.out.get(), writers.err.get()});
}

CoreShare WorkerProcesses::take_share(Process& process) {
  Cores& cores = cores_[process.machine];
  for (std::size_t i = 0; i < cores.shares.size(); ++i) {
    if (!cores.used.insert(i).second) continue;
    process.share = i;
    return cores.shares[i];
  }
  return {.cpus = {}, .threads = cores.shares.empty() ? 1 : cores.shares.front().threads};
}

std::optional<int> WorkerProcesses::worker_of(int process) const {
  const auto found = std::ranges::find_if(
      processes_, [&](const auto& entry) { return entry.second.number == process; });
  return found == processes_.end() ? std::nullopt : std::optional(found->first);
}

void WorkerProcesses::ended(int worker) {
  const auto found = processes_.find(worker);
  if (found == processes_.end()) return;
  const Process& process = found->second;
  if (process.share) cores_[process.machine].used.erase(*process.share);
  processes_.erase(found);
}

void WorkerProcesses::stop(int worker) {
  const auto found = processes_.find(worker);
  if (found == processes_.end()) return;
  guard_.signal(found->second.number, SIGTERM);
  guard_.signal(found->second.number, SIGCONT);  // a stopped process cannot end
  found->second.killed_from = Clock::now() + options_.grace;
}

void WorkerProcesses::kill_late(TimePoint now) {
  for (auto& [worker, process] : processes_) {
    if (now < process.killed_from) continue;
    process.killed_from = TimePoint::max();
    guard_.signal(process.number, SIGKILL);
  }
}

}  // namespace peal::launch::elastic
