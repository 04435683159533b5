#include "peal/launch/elastic/state.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace peal::launch::elastic {
namespace {

Worker& worker_of(State& state, int number) {
  return state.workers.at(static_cast<std::size_t>(number));
}

Host* find_host(State& state, const std::string& name) {
  const auto found = std::ranges::find(state.hosts, name, &Host::name);
  return found == state.hosts.end() ? nullptr : &*found;
}

void bar(Host& host, TimePoint now, const ElasticOptions& options, double random) {
  const Cooldown range = options.cooldown.value_or(Cooldown{});
  host.barred_until =
      std::max(host.barred_until, now + cooldown_after(host.failures, range, random));
  ++host.failures;
}

void enter(Worker& worker, Phase phase, TimePoint now) {
  worker.phase = phase;
  worker.since = now;
}

}  // namespace

HostChanges operator|(HostChanges a, HostChanges b) {
  return static_cast<HostChanges>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

bool is_alive(Phase phase) { return phase <= Phase::kLeaving; }

std::string name_of(const Worker& worker) {
  return fmt::format("{}[{}]", worker.host, worker.slot);
}

void hosts_found(State& state, const std::vector<HostSlots>& found) {
  const auto is_now = [&](const Host& host) {
    return std::ranges::find(found, host.name, &HostSlots::name) != found.end();
  };
  for (Host& host : state.hosts) host.is_found = host.is_found && is_now(host);
  // Hosts that return are as young as new ones: behind all that were there.
  const auto first_absent = std::stable_partition(
      state.hosts.begin(), state.hosts.end(), [](const Host& host) { return host.is_found; });
  std::vector<Host> absent(first_absent, state.hosts.end());
  state.hosts.erase(first_absent, state.hosts.end());
  for (const HostSlots& line : found) {
    auto known = std::ranges::find(state.hosts, line.name, &Host::name);
    if (known != state.hosts.end()) {
      known->slots = line.slots;
      continue;
    }
    Host host{.name = line.name};
    const auto past = std::ranges::find(absent, line.name, &Host::name);
    if (past != absent.end()) {
      host = *past;
      absent.erase(past);
    }
    host.slots = line.slots;
    host.is_found = true;
    state.hosts.push_back(host);
  }
  state.hosts.insert(state.hosts.end(), absent.begin(), absent.end());
}

void host_connects(State& state, TimePoint now, const std::string& name) {
  Host* const host = find_host(state, name);
  if (host == nullptr) return;
  host->reach = Reach::kConnecting;
  host->since = now;
}

void host_ready(State& state, const std::string& name) {
  Host* const host = find_host(state, name);
  if (host == nullptr) return;
  host->reach = Reach::kReady;
  host->problem.clear();
}

void host_left(State& state, const std::string& name) {
  if (Host* const host = find_host(state, name)) host->reach = Reach::kNone;
}

void host_failed(State& state,
                 TimePoint now,
                 const std::string& name,
                 const std::string& problem,
                 const ElasticOptions& options,
                 double random) {
  Host* const host = find_host(state, name);
  if (host == nullptr) return;
  host->reach = Reach::kNone;
  host->problem = problem;
  bar(*host, now, options, random);
}

int worker_started(State& state, TimePoint now, const std::string& host, int slot) {
  const int number = static_cast<int>(state.workers.size());
  state.workers.push_back({.number = number, .host = host, .slot = slot, .since = now});
  return number;
}

void worker_asked(State& state, TimePoint now, int number) {
  Worker& worker = worker_of(state, number);
  if (!is_alive(worker.phase) || worker.phase == Phase::kLeaving) return;
  if (!worker.has_state) worker.rank.reset();
  enter(worker, Phase::kAsking, now);
}

void worker_synchronized(State& state, int number) { worker_of(state, number).has_state = true; }

void worker_progressed(State& state, int number) {
  if (worker_of(state, number).rank) state.has_progress = true;
}

void worker_finishes(State& state, TimePoint now, int number) {
  Worker& worker = worker_of(state, number);
  if (!is_alive(worker.phase) || worker.phase == Phase::kLeaving) return;
  worker.has_announced_end = true;
  enter(worker, Phase::kFinishing, now);
}

void worker_leaves(State& state, TimePoint now, int number) {
  Worker& worker = worker_of(state, number);
  if (is_alive(worker.phase)) enter(worker, Phase::kLeaving, now);
}

void worker_stopped(State& state, TimePoint now, int number) {
  worker_leaves(state, now, number);
  worker_of(state, number).is_told_to_end = true;
}

WorkerEnd end_of(int status) {
  constexpr std::array kCrashes = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
  if (!WIFSIGNALED(status)) {
    return WEXITSTATUS(status) == 0 ? WorkerEnd::kWell : WorkerEnd::kFailed;
  }
  return std::ranges::count(kCrashes, WTERMSIG(status)) > 0 ? WorkerEnd::kFailed
                                                            : WorkerEnd::kKilled;
}

void worker_ended(State& state,
                  TimePoint now,
                  int number,
                  WorkerEnd end,
                  const ElasticOptions& options,
                  double random) {
  Worker& worker = worker_of(state, number);
  if (!is_alive(worker.phase)) return;
  if (worker.phase == Phase::kLeaving) return enter(worker, Phase::kLeft, now);
  enter(worker, end == WorkerEnd::kWell ? Phase::kSucceeded : Phase::kFailed, now);
  if (end == WorkerEnd::kWell || end == WorkerEnd::kLost) return;
  if (end == WorkerEnd::kFailed && worker.rank) state.has_own_failure = true;
  if (Host* const host = find_host(state, worker.host)) bar(*host, now, options, random);
}

void round_began(State& state, TimePoint now, const std::vector<Member>& members) {
  state.fruitless = state.has_progress ? 0 : fruitless_rounds(state);
  state.has_progress = false;
  state.has_own_failure = false;
  ++state.round;
  state.told = HostChanges::kNone;
  for (Worker& worker : state.workers) {
    worker.rank.reset();
    if (worker.phase == Phase::kTraining) enter(worker, Phase::kLeaving, now);
  }
  for (const Member& member : members) {
    Worker& worker = worker_of(state, member.worker);
    worker.rank = member.place.rank;
    worker.has_state = worker.has_state || state.round == 1;
    enter(worker, Phase::kTraining, now);
  }
}

int fruitless_rounds(const State& state) {
  return state.fruitless + (state.has_own_failure && !state.has_progress ? 1 : 0);
}

bool has_slot(const State& state, const Worker& worker) {
  const auto host = std::ranges::find(state.hosts, worker.host, &Host::name);
  return host != state.hosts.end() && host->is_found && worker.slot < host->slots;
}

}  // namespace peal::launch::elastic
