// A job without processes, for tests of the decisions of an elastic job.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "peal/launch/elastic/decide.h"

namespace peal::launch::elastic {

inline constexpr TimePoint kBegin{std::chrono::hours(1)};

/// A job that a test moves on by events.
class TestJob {
 public:
  explicit TestJob(const std::vector<HostSlots>& hosts, ElasticOptions options = {})
      : options_(std::move(options)) {
    state.begun = now;
    find(hosts);
  }

  void find(const std::vector<HostSlots>& hosts) { hosts_found(state, hosts); }
  void ask(int worker) { worker_asked(state, now, worker); }
  void finish(int worker) { worker_finishes(state, now, worker); }
  void succeed(int worker) { worker_ended(state, now, worker, WorkerEnd::kWell, options_, 0.5); }
  void fail(int worker) { worker_ended(state, now, worker, WorkerEnd::kFailed, options_, 0.5); }
  void kill(int worker) { worker_ended(state, now, worker, WorkerEnd::kKilled, options_, 0.5); }

  /// From now on, hosts become ready only by `ready`.
  void await_hosts() { awaits_hosts_ = true; }
  void ready(const std::string& host) { host_ready(state, host); }
  void lose(const std::string& host) {
    for (const Worker& worker : std::vector(state.workers)) {
      if (worker.host != host || !is_alive(worker.phase)) continue;
      worker_ended(state, now, worker.number, WorkerEnd::kLost, options_, 0.5);
    }
    refuse(host, "no sign of life");
  }
  void refuse(const std::string& host, const std::string& problem) {
    host_failed(state, now, host, problem, options_, 0.5);
  }

  /// Acts until there is nothing to do, and returns what was done. Leaves out connections, unless
  /// the test awaits hosts.
  std::vector<std::string> act() {
    std::vector<std::string> done;
    while (true) {
      const Decision decision = decide(now, state, options_);
      const auto text =
          std::visit([&](const auto& action) { return apply(action); }, decision.action);
      if (text.empty()) return done;
      const bool is_connection = text.starts_with("connect") || text.starts_with("leave");
      if (awaits_hosts_ || !is_connection) done.push_back(text);
      if (text.starts_with("end")) return done;
    }
  }

  /// Starts all workers and begins the first round.
  void train() {
    act();
    for (const Worker& worker : std::vector(state.workers)) ask(worker.number);
    act();
    ASSERT_EQ(state.round, 1);
  }

  State state;
  TimePoint now = kBegin;

 private:
  static std::string apply(const Wait&) { return ""; }
  std::string apply(const ConnectHost& action) {
    host_connects(state, now, action.host);
    if (!awaits_hosts_) host_ready(state, action.host);
    return "connect " + action.host;
  }
  std::string apply(const LeaveHost& action) {
    host_left(state, action.host);
    return "leave " + action.host;
  }
  std::string apply(const StartWorker& action) {
    const int number = worker_started(state, now, action.host, action.slot);
    return "start " + name_of(state.workers[static_cast<std::size_t>(number)]);
  }
  std::string apply(const BeginRound& action) {
    std::string text = "round";
    for (const Member& member : action.members) text += " " + std::to_string(member.worker);
    round_began(state, now, action.members);
    return text;
  }
  std::string apply(const TellChanges& action) {
    state.told = action.changes;
    return "tell " + std::to_string(static_cast<int>(action.changes));
  }
  std::string apply(const RemoveWorker& action) {
    worker_leaves(state, now, action.worker);
    return "remove " + std::to_string(action.worker);
  }
  std::string apply(const StopWorker& action) {
    worker_stopped(state, now, action.worker);
    return "stop " + std::to_string(action.worker);
  }
  static std::string apply(const EndWell&) { return "end well"; }
  static std::string apply(const EndBadly& action) { return "end: " + action.why; }

  ElasticOptions options_;
  bool awaits_hosts_ = false;
};

inline std::vector<HostSlots> two_hosts() { return {{"a", 2}, {"b", 2}}; }

}  // namespace peal::launch::elastic
