#include "peal/launch/elastic/worker_processes.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "peal/system/cpus.h"
#include "peal/system/open_files.h"

namespace peal::launch::elastic {
namespace {

/// "localhost-0"; of the second worker on this slot "localhost-0.2".
std::string log_name(const Worker& worker, int attempt) {
  const std::string slot = fmt::format("{}-{}", worker.host, worker.slot);
  return attempt == 1 ? slot : fmt::format("{}.{}", slot, attempt);
}

}  // namespace

WorkerProcesses::WorkerProcesses(const LaunchOptions& options,
                                 const WorkerKit& kit,
                                 WorkerOutputs& outputs,
                                 Starter& starter)
    : options_(options), kit_(kit), outputs_(outputs), starter_(starter) {}

void WorkerProcesses::prepare(int workers) {
  shares_ = divide_cores(usable_cores(), workers, cpu_quota());
  constexpr long kForOthers = 64;
  constexpr long kForEach = 16;  // two pipes, two logs, connections to the store, and a reserve
  allow_open_files(kForOthers + kForEach * workers, fmt::format("starting {} workers", workers));
}

void WorkerProcesses::start(const Worker& worker, int process, int attempt) {
  Process& own = processes_[worker.number];
  own.number = process;
  const RankCommand command = worker_command(options_, kit_, worker, process, take_share(own));
  const WorkerWriters writers =
      outputs_.add(worker.number, name_of(worker), log_name(worker, attempt));
  starter_.start(worker.host, command, writers.out.get(), writers.err.get());
}

CoreShare WorkerProcesses::take_share(Process& process) {
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (!used_shares_.insert(i).second) continue;
    process.share = i;
    return shares_[i];
  }
  return {.cpus = {}, .threads = shares_.empty() ? 1 : shares_.front().threads};
}

std::optional<int> WorkerProcesses::worker_of(int process) const {
  const auto found = std::ranges::find_if(
      processes_, [&](const auto& entry) { return entry.second.number == process; });
  return found == processes_.end() ? std::nullopt : std::optional(found->first);
}

void WorkerProcesses::ended(int worker) {
  const auto found = processes_.find(worker);
  if (found == processes_.end()) return;
  if (found->second.share) used_shares_.erase(*found->second.share);
  processes_.erase(found);
}

void WorkerProcesses::stop(int worker) {
  const auto found = processes_.find(worker);
  if (found == processes_.end()) return;
  starter_.signal(found->second.number, SIGTERM);
  starter_.signal(found->second.number, SIGCONT);  // a stopped process cannot end
  found->second.killed_from = Clock::now() + options_.grace;
}

void WorkerProcesses::kill_late(TimePoint now) {
  for (auto& [worker, process] : processes_) {
    if (now < process.killed_from) continue;
    process.killed_from = TimePoint::max();
    starter_.signal(process.number, SIGKILL);
  }
}

}  // namespace peal::launch::elastic
