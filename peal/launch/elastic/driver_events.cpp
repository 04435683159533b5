// What happens to the job of a driver: events of processes and hosts, requests of workers, and runs
// of the discovery script.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/launch/elastic/driver.h"
#include "peal/system/process_state.h"

namespace peal::launch::elastic {
namespace {

using rendezvous::ElasticAnswer;

/// " with workers node2[0], node2[1]": those that were lost with the host and are not reported yet.
/// From now on they are.
std::string show_lost_workers(const std::string& host, std::vector<ElasticEnd>& ends) {
  std::vector<std::string> names;
  for (ElasticEnd& end : ends) {
    if (end.host != host || end.lost.empty() || std::exchange(end.is_shown, true)) continue;
    names.push_back(end.worker);
  }
  if (names.empty()) return "";
  return fmt::format(" with worker{} {}", names.size() == 1 ? "" : "s", fmt::join(names, ", "));
}

}  // namespace

void Driver::handle(const GuardEvent& event) {
  if (event.kind == GuardEvent::Kind::kNotStarted) not_started(event);
  if (event.kind == GuardEvent::Kind::kEnded) process_ended(event);
  if (event.kind != GuardEvent::Kind::kLost) return;
  if (const auto number = processes_.worker_of(event.rank)) worker_lost(*number);
}

void Driver::not_started(const GuardEvent& event) {
  if (discovery_.is_own(event.rank)) {
    return take_hosts(discovery_.end_without_start(event.value));
  }
  const auto number = processes_.worker_of(event.rank);
  if (!number) return;
  processes_.ended(*number);
  worker_leaves(state_, Clock::now(), *number);
  worker_ended(state_, Clock::now(), *number, WorkerEnd::kFailed, elastic_, 0);
  if (!runs()) return;
  report_.start_error = event.value;
  const std::string& host = worker(*number).host;
  fail(fmt::format(
      "cannot start {} on {}: {}", kits_.at(host).program, host, ::strerrordesc_np(event.value)));
}

void Driver::process_ended(const GuardEvent& event) {
  if (discovery_.is_own(event.rank)) return take_hosts(discovery_.end(event.value));
  if (const auto number = processes_.worker_of(event.rank)) worker_process_ended(*number, event);
}

void Driver::worker_process_ended(int number, const GuardEvent& event) {
  const Worker before = worker(number);
  end_worker(
      number,
      end_of(event.value),
      {.pid = event.pid, .status = event.value, .out_of_memory = out_of_memory(event.detail)});
  if (runs() && before.rank) {
    fail_meeting(before,
                 fmt::format("(pid {}) {}", event.pid, describe_wait_status(event.value)),
                 WIFSIGNALED(event.value) ? ErrorCause::kKilled : ErrorCause::kExited);
  }
}

/// A lost worker counts as killed, because its exit code is not known.
void Driver::worker_lost(int number) {
  const Worker before = worker(number);
  const std::string why = hosts_->why_lost(processes_.process_of(number));
  end_worker(number, WorkerEnd::kLost, {.status = SIGKILL, .lost = why});
  if (runs() && before.rank) {
    fail_meeting(before, "was lost with its host", ErrorCause::kUnreachable);
  }
}

/// `end`: the process, its status, and whether it was lost or out of memory.
void Driver::end_worker(int number, WorkerEnd how, ElasticEnd end) {
  const TimePoint now = Clock::now();
  const Worker before = worker(number);
  processes_.ended(number);
  asks_.erase(number);
  outputs_.drain(number);
  worker_ended(state_, now, number, how, elastic_, random());
  end.host = before.host;
  end.worker = name_of(before);
  end.after = now - start_;
  end.round = state_.round;
  end.rank = before.rank;
  if (before.phase == Phase::kLeaving) {
    end.how = ElasticEnd::How::kRemoved;
  } else if (how != WorkerEnd::kWell) {
    end.how = runs() ? ElasticEnd::How::kFailed : ElasticEnd::How::kEnded;
  }
  if (end.how == ElasticEnd::How::kFailed) end.last_lines = outputs_.last_lines(number);
  report_.ends.push_back(end);
  if (before.rank) records_.add(end);
}

/// If no worker has started, the exit code says why no host can be used.
void Driver::note_refusals() {
  if (state_.workers.empty() && refusals_.size() == 1) report_.refusal = *refusals_.begin();
}

/// Call it after the events of the guard, because these are about the workers of lost hosts.
void Driver::handle_hosts() {
  std::vector<HostEvent> failures;
  while (const auto event = hosts_->try_next_host()) {
    if (event->kind == HostEvent::Kind::kReady) {
      host_is_ready(*event);
    } else {
      host_failed(state_, Clock::now(), event->host, event->problem, elastic_, random());
      failures.push_back(*event);
    }
  }
  if (failures.empty() || !runs()) return;
  const Decision next = decide(Clock::now(), state_, elastic_);
  const bool goes_on = !std::holds_alternative<EndBadly>(next.action);
  for (const HostEvent& event : failures) {
    const int pause = shown_pause_of(event.host);
    if (event.kind == HostEvent::Kind::kRefused) {
      refusals_.insert(event.exit_code);
      say_refusal(event, goes_on ? fmt::format("; it is tried again in {} s", pause) : "");
    } else {
      say_loss(event, goes_on ? fmt::format("; it gets no new workers for {} s", pause) : "");
    }
  }
}

void Driver::host_is_ready(const HostEvent& event) {
  const HostFacts& facts = event.facts;
  host_ready(state_, event.host);
  problems_.erase(event.host);
  kits_[event.host] = {.program = facts.program,
                       .arguments = facts.arguments,
                       .common = common_environment(options_, job_, facts.environment),
                       .driver = facts.machine.empty() ? mailroom_.address()
                                                       : mailroom_.addresses_for(facts.launcher),
                       .machine = facts.machine,
                       .records = facts.records};
  int slots = 0;
  for (const Host& each : state_.hosts) {
    if (!each.is_found || each.reach != Reach::kReady) continue;
    if (kits_.at(each.name).machine == facts.machine) slots += each.slots;
  }
  processes_.divide(facts, std::max(1, std::min(slots, elastic_.max_ranks.value_or(slots))));
}

/// Says it once for several attempts that fail in the same way. `next`: when the next attempt
/// begins, or "".
void Driver::say_refusal(const HostEvent& event, const std::string& next) {
  std::string& said = problems_[event.host];
  if (std::exchange(said, event.problem) == event.problem) return;
  say(fmt::format("host {} cannot be used: {}{}", event.host, event.problem, next));
}

/// `next`: when the host may be used again, or "".
void Driver::say_loss(const HostEvent& event, const std::string& next) {
  const std::string workers = show_lost_workers(event.host, report_.ends);
  say(fmt::format("host {} was lost{} after {:.1f} s: {}{}",
                  event.host,
                  workers,
                  std::chrono::duration<double>(Clock::now() - start_).count(),
                  event.problem,
                  next));
}

void Driver::handle_requests() {
  for (const auto& request : mailroom_.take_requests()) {
    if (request.worker < 0 || request.worker >= std::ssize(state_.workers)) continue;
    if (!is_alive(worker(request.worker).phase)) {
      refuse_lost_worker(request);
      continue;
    }
    switch (request.kind) {
      case rendezvous::ElasticRequest::Kind::kNextRound:
        worker_asks(request.worker, request.number);
        break;
      case rendezvous::ElasticRequest::Kind::kSynchronized:
        worker_synchronized(state_, request.worker);
        break;
      case rendezvous::ElasticRequest::Kind::kProgress:
        worker_progressed(state_, request.worker);
        break;
      case rendezvous::ElasticRequest::Kind::kFinish:
        worker_finishes(state_, Clock::now(), request.worker);
        break;
      case rendezvous::ElasticRequest::Kind::kStop:  // is for the mailroom
        break;
    }
  }
}

/// A worker whose host was lost may still run there, and come back with its network. Another worker
/// has its slot.
void Driver::refuse_lost_worker(const rendezvous::ElasticRequest& request) {
  if (request.kind != rendezvous::ElasticRequest::Kind::kNextRound) return;
  mailroom_.answer(request.worker, request.number, {.kind = ElasticAnswer::Kind::kRemoved});
}

void Driver::worker_asks(int number, std::int64_t request) {
  const Worker before = worker(number);
  asks_[number] = request;
  if (!runs()) return answer(number, {.kind = ElasticAnswer::Kind::kOver, .reason = over_});
  if (before.phase == Phase::kLeaving) {
    return answer(number, {.kind = ElasticAnswer::Kind::kRemoved});
  }
  worker_asked(state_, Clock::now(), number);
  // Other ranks may still wait for this one in the meeting of the round.
  if (before.rank) fail_meeting(before, "asked for another round", ErrorCause::kLeft);
}

void Driver::take_hosts(const DiscoveryRun::Result& result) {
  if (!runs()) return;
  if (!result.problem.empty()) {
    if (!has_hosts_) throw Error(ErrorKind::kUsage, result.problem);
    if (std::exchange(discovery_problem_, result.problem) != result.problem) {
      say(result.problem + "; the hosts stay as they are");
    }
    return;
  }
  discovery_problem_.clear();
  hosts_found(state_, result.hosts);
  has_hosts_ = true;
}

}  // namespace peal::launch::elastic
