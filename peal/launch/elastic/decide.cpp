#include "peal/launch/elastic/decide.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "peal/launch/elastic/assign_ranks.h"

namespace peal::launch::elastic {
namespace {

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// The questions that the rules ask of a state.
struct View {
  const TimePoint now;
  const State& state;
  const ElasticOptions& options;

  template <class Predicate>
  int count(Predicate predicate) const {
    return static_cast<int>(std::ranges::count_if(state.workers, predicate));
  }
  int count(Phase phase) const {
    return count([&](const Worker& w) { return w.phase == phase; });
  }

  /// Whether the job only waits for workers that still have something to do.
  bool is_closing() const { return count(Phase::kSucceeded) + count(Phase::kFinishing) > 0; }

  /// The workers with a claim to a place: not ended, and not about to.
  int present() const {
    return count([](const Worker& w) { return is_alive(w.phase) && w.phase != Phase::kLeaving; });
  }
  /// The workers of the current round that can continue the training. A worker that has joined may
  /// have the state and not have said so yet. When it asks for a round, this is known.
  int survivors() const {
    return count(
        [](const Worker& w) { return w.rank && is_alive(w.phase) && w.phase != Phase::kLeaving; });
  }
  std::vector<int> asking() const {
    std::vector<int> numbers;
    for (const Worker& worker : state.workers) {
      if (worker.phase == Phase::kAsking) numbers.push_back(worker.number);
    }
    return numbers;
  }
  /// Since when workers of the round wait for the next one (or since when the job waits for the
  /// first round); nothing: none waits.
  std::optional<TimePoint> waits_since() const {
    if (state.round == 0) return state.begun;
    std::optional<TimePoint> first;
    for (const Worker& worker : state.workers) {
      if (worker.phase != Phase::kAsking || !worker.rank) continue;
      first = std::min(first.value_or(worker.since), worker.since);
    }
    return first;
  }
  bool is_too_late() const {
    const auto since = waits_since();
    return since && now - *since >= options.timeout;
  }
  int most() const { return options.max_ranks.value_or(std::numeric_limits<int>::max()); }

  int workers_on(const Host& host) const {
    return count([&](const Worker& w) { return is_alive(w.phase) && w.host == host.name; });
  }
  bool may_get_workers(const Host& host) const { return host.is_found && now >= host.barred_until; }
  bool may_answer_soon(const Host& host) const {
    return host.reach == Reach::kConnecting && now - host.since < kToConnect;
  }
  /// How many more workers the connected hosts can take, and those that are about to answer.
  int room() const {
    int slots = 0;
    for (const Host& host : state.hosts) {
      const bool is_usable = host.reach == Reach::kReady || may_answer_soon(host);
      if (!is_usable || !may_get_workers(host)) continue;
      slots += std::max(0, host.slots - workers_on(host));
    }
    return slots;
  }
  /// Whether workers run on as many other hosts as the job may have.
  bool is_one_host_too_many(const Host& host) const {
    if (!options.max_hosts) return false;
    const auto others = std::ranges::count_if(state.hosts, [&](const Host& other) {
      return other.name != host.name && workers_on(other) > 0;
    });
    return others >= *options.max_hosts;
  }
  /// Whether a host may still answer in time for the first round.
  bool awaits_host() const {
    return std::ranges::any_of(
        state.hosts, [&](const Host& host) { return host.is_found && may_answer_soon(host); });
  }
};

using Maybe = std::optional<Decision>;

Decision end_badly(std::string why) { return {EndBadly{why}, why}; }

/// "1 worker", "2 workers"
std::string workers(int count) { return fmt::format("{} worker{}", count, count == 1 ? "" : "s"); }

/// "localhost[0], 127.0.0.1[1]": workers of the current round, if one has begun, that have failed
/// after this time.
std::string names_of_failed(const State& state, TimePoint after = TimePoint::min()) {
  std::string text;
  for (const Worker& worker : state.workers) {
    if (worker.phase != Phase::kFailed || (state.round > 0 && !worker.rank)) continue;
    if (worker.since > after) text += (text.empty() ? "" : ", ") + name_of(worker);
  }
  return text;
}

/// All workers have ended, and at least one ended well. If a worker has announced its end, the
/// training is complete. Otherwise exit code 0 may have come too early: the other workers then lose
/// this worker, and fail.
Decision end_after_success(const View& view) {
  const Worker* last = nullptr;  // that ended well
  for (const Worker& worker : view.state.workers) {
    if (worker.phase != Phase::kSucceeded) continue;
    if (worker.has_announced_end) return {EndWell{}, "a worker has trained to the end"};
    if (last == nullptr || last->since < worker.since) last = &worker;
  }
  const std::string failed = names_of_failed(view.state, last->since);
  if (failed.empty()) return {EndWell{}, "all workers have ended, and the last one well"};
  return end_badly(fmt::format(
      "worker {} ended with exit code 0 while others still trained; after that failed: {}",
      name_of(*last),
      failed));
}

/// Every host has been tried, and refuses.
Maybe end_without_hosts(const State& state) {
  const auto is_useless = [](const Host& host) {
    return !host.is_found || (host.reach == Reach::kNone && !host.problem.empty());
  };
  const bool has_hosts = std::ranges::any_of(state.hosts, &Host::is_found);
  if (!has_hosts || !std::ranges::all_of(state.hosts, is_useless)) return {};
  return end_badly("none of the hosts can be used");
}

Maybe end_of_job(const View& view) {
  const State& state = view.state;
  if (state.workers.empty()) return end_without_hosts(state);
  const bool is_anybody_alive = view.count([](const Worker& w) { return is_alive(w.phase); }) > 0;
  if (view.count(Phase::kSucceeded) > 0) {
    if (is_anybody_alive) return {};
    return end_after_success(view);
  }
  const std::string failed = names_of_failed(state);
  if (state.round > 0 && view.survivors() == 0) {
    return end_badly(
        fmt::format("No hosts from previous set remaining, unable to broadcast state. (No worker "
                    "that has the state of the training is left of round {}{}.)",
                    state.round,
                    failed.empty() ? "" : "; failed: " + failed));
  }
  if (!view.is_closing() && fruitless_rounds(state) >= kMostFruitlessRounds) {
    return end_badly(
        fmt::format("workers failed in {} rounds in a row before a commit, so the "
                    "program seems to have a bug; in round {} failed: {}",
                    fruitless_rounds(state),
                    state.round,
                    failed));
  }
  if (state.round == 0 && !is_anybody_alive && view.count(Phase::kFailed) > 0) {
    return end_badly(fmt::format("all workers failed: {}", failed));
  }
  return {};
}

Maybe remove_worker(const View& view) {
  for (const Worker& worker : view.state.workers) {
    if (worker.phase != Phase::kAsking) continue;
    if (!has_slot(view.state, worker)) {
      return Decision{RemoveWorker{worker.number},
                      fmt::format("the slot of {} is gone", name_of(worker))};
    }
    if (view.is_closing() && !worker.rank) {
      return Decision{RemoveWorker{worker.number},
                      fmt::format("the job is about to end, without {}", name_of(worker))};
    }
  }
  return {};
}

/// Why the worker must be ended by a signal; empty: it need not.
std::string why_to_stop(const View& view, const Worker& worker) {
  const Duration in_phase = view.now - worker.since;
  if (worker.phase == Phase::kStarting && !has_slot(view.state, worker)) {
    return fmt::format("the slot of {} is gone", name_of(worker));
  }
  if (worker.phase == Phase::kStarting && view.is_closing() && view.survivors() == 0) {
    return fmt::format("the job has ended without {}", name_of(worker));
  }
  if (worker.phase == Phase::kLeaving && !worker.is_told_to_end && in_phase >= kToLeave) {
    return fmt::format(
        "{} was removed, and did not end within {} s", name_of(worker), seconds(kToLeave));
  }
  if (worker.phase == Phase::kTraining && view.is_too_late()) {
    return fmt::format("{} did not come to round {} within {} s",
                       name_of(worker),
                       view.state.round + 1,
                       seconds(view.options.timeout));
  }
  return "";
}

Maybe stop_worker(const View& view) {
  for (const Worker& worker : view.state.workers) {
    const std::string why = why_to_stop(view, worker);
    if (!why.empty()) return Decision{StopWorker{worker.number}, why};
  }
  return {};
}

Maybe leave_host(const View& view) {
  for (const Host& host : view.state.hosts) {
    if (host.is_found || host.reach == Reach::kNone || view.workers_on(host) > 0) continue;
    return Decision{LeaveHost{host.name}, fmt::format("{} is not a host of the job", host.name)};
  }
  return {};
}

Maybe connect_host(const View& view) {
  if (view.is_closing() || view.room() >= view.most() - view.present()) return {};
  for (const Host& host : view.state.hosts) {
    const bool is_candidate =
        host.reach == Reach::kNone && host.slots > 0 && view.may_get_workers(host);
    if (!is_candidate || view.is_one_host_too_many(host)) continue;
    return Decision{ConnectHost{host.name}, fmt::format("{} has slots for workers", host.name)};
  }
  return {};
}

Maybe start_worker(const View& view) {
  if (view.is_closing() || view.present() >= view.most()) return {};
  for (const Host& host : view.state.hosts) {
    if (host.reach != Reach::kReady || !view.may_get_workers(host)) continue;
    if (view.is_one_host_too_many(host)) continue;
    for (int slot = 0; slot < host.slots; ++slot) {
      const bool is_used = view.count([&](const Worker& w) {
        return is_alive(w.phase) && w.host == host.name && w.slot == slot;
      }) > 0;
      if (is_used) continue;
      return Decision{StartWorker{host.name, slot},
                      fmt::format("slot {} of {} is free", slot, host.name)};
    }
  }
  return {};
}

/// Workers that are ready to join, while the others train.
bool has_newcomers(const View& view) {
  const bool others_may_come = view.count([&](const Worker& w) {
    return w.phase == Phase::kStarting && view.now - w.since < kToJoin;
  }) > 0;
  return !others_may_come &&
         view.count([](const Worker& w) { return w.phase == Phase::kAsking && !w.rank; }) > 0;
}

Maybe tell_changes(const View& view) {
  if (view.is_closing() || view.count(Phase::kTraining) == 0) return {};
  HostChanges changes = view.state.told;
  const bool has_lost = std::ranges::any_of(view.state.workers, [&](const Worker& w) {
    return w.phase == Phase::kTraining && !has_slot(view.state, w);
  });
  if (has_lost) changes = changes | HostChanges::kRemoved;
  if (has_newcomers(view)) changes = changes | HostChanges::kAdded;
  if (changes == view.state.told) return {};
  return Decision{TellChanges{changes},
                  has_lost ? "workers of the round have lost their slots"
                           : "workers on new slots are ready to join"};
}

/// "; node2: no sign of life for 2 s": the hosts that cannot be used.
std::string problems(const State& state) {
  std::string text;
  for (const Host& host : state.hosts) {
    if (host.is_found && !host.problem.empty()) {
      text += fmt::format("; {}: {}", host.name, host.problem);
    }
  }
  return text;
}

/// Why min_ranks is not reached.
std::string too_few(const View& view, int size) {
  int slots = 0;
  for (const Host& host : view.state.hosts) slots += host.is_found ? host.slots : 0;
  return fmt::format(
      "only {} became ready within {} s (--elastic-timeout), but the job needs at least {} "
      "(--min-np); the "
      "hosts have {} slot{}{}",
      workers(size),
      seconds(view.options.timeout),
      view.options.min_ranks,
      slots,
      slots == 1 ? "" : "s",
      problems(view.state));
}

Maybe begin_round(const View& view) {
  // A worker that has lost its slot need not ask: it is removed in any case.
  const int others = view.count(
      [&](const Worker& w) { return w.phase == Phase::kTraining && has_slot(view.state, w); });
  if (others > 0) return {};
  const std::vector<int> asking = view.asking();
  const int size = static_cast<int>(asking.size());
  if (size < view.options.min_ranks && !view.is_closing()) {
    if (!view.is_too_late()) return {};
    return end_badly(too_few(view, size));
  }
  if (asking.empty()) return {};
  if (view.state.round == 0) {
    const bool may_grow = view.count(Phase::kStarting) > 0 || view.awaits_host();
    if (may_grow && !view.is_too_late()) return {};
  } else if (!view.waits_since()) {
    return {};  // no worker that asks has the state
  } else if (view.options.reset_limit && view.state.round > *view.options.reset_limit) {
    const std::string why = fmt::format(
        "Horovod was shutdown because number of resets during elastic job exceeded limit: {}",
        *view.options.reset_limit);
    if (!view.is_closing()) return end_badly(why);
    return Decision{RemoveWorker{asking.front()}, why};  // the job may still end well
  }
  return Decision{BeginRound{assign_ranks(view.state, asking)},
                  fmt::format("{} for round {}", workers(size), view.state.round + 1)};
}

}  // namespace

Decision decide(TimePoint now, const State& state, const ElasticOptions& options) {
  const View view{now, state, options};
  for (const auto rule : {end_of_job,
                          remove_worker,
                          stop_worker,
                          leave_host,
                          connect_host,
                          start_worker,
                          tell_changes,
                          begin_round}) {
    if (Maybe decision = rule(view)) return *std::move(decision);
  }
  return {Wait{}, "nothing to do"};
}

}  // namespace peal::launch::elastic
