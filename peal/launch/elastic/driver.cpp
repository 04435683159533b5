#include "peal/launch/elastic/driver.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/system/process_state.h"

namespace peal::launch::elastic {
namespace {

using rendezvous::ElasticAnswer;

/// How often the driver looks at the clock.
constexpr Timeout kTick{100};

GuardDuty duty_of(const LaunchOptions& options) {
  return {.grace = options.grace, .starts = Starts::kAlsoLater};
}

int shown_seconds(Duration duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::seconds>(duration).count());
}

}  // namespace

Driver::Driver(const LaunchOptions& options,
               const ElasticOptions& elastic,
               const JobContext& job,
               const RecordPlace& records,
               const std::string& program,
               const Variables& inherited,
               Target out,
               Target err)
    : elastic_(elastic),
      kit_{.program = program, .common = common_environment(options, job, inherited)},
      records_(records, job.id),
      screen_(out, err),
      outputs_(screen_, options),
      supervisor_(duty_of(options)),
      starter_(supervisor_.guard()),
      processes_(options, kit_, outputs_, starter_),
      discovery_(elastic.discovery_script, elastic.slots, inherited, starter_),
      mailroom_(config_from(fixed_environment(kit_.common)), kit_.common.at("PEAL_JOB")) {
  state_.begun = start_;
  kit_.driver = mailroom_.address();
}

ElasticReport Driver::run() {
  while (!is_over()) wait_and_handle();
  const Supervisor::Intervention& outside = supervisor_.intervention();
  report_.signal = outside.signal;
  report_.guard_lost = outside.guard_lost;
  report_.survivors = outside.survivors;
  report_.after = Clock::now() - start_;
  report_.lost_output = outputs_.lost();
  for (const Channel channel : {Channel::kOut, Channel::kErr}) {
    if (screen_.lost(channel).error != 0) report_.lost_output.push_back(screen_.lost(channel));
  }
  return report_;
}

bool Driver::is_over() const {
  return supervisor_.stage() == Stage::kAbandoned ||
         (supervisor_.stage() == Stage::kGone && outputs_.are_closed() && screen_.is_empty());
}

bool Driver::waits_for_last_output() const {
  return supervisor_.stage() == Stage::kGone &&
         (supervisor_.intervention().signal != 0 || !screen_.is_full());
}

void Driver::wait_and_handle() {
  std::vector<pollfd> entries = {{mailroom_.news(), POLLIN, 0}, {screen_.waits_for(), POLLOUT, 0}};
  const std::size_t first_of_supervisor = entries.size();
  supervisor_.add_to(entries);
  discovery_.add_to(entries);
  const std::size_t first_output = entries.size();
  outputs_.add_to(entries);
  const bool limited = waits_for_last_output();
  const Timeout longest = limited ? kLastOutput : kTick;
  const int ready = ::poll(entries.data(), entries.size(), static_cast<int>(longest.count()));
  const std::span all(entries);
  outputs_.handle(all.subspan(first_output));  // before the list of workers changes
  screen_.write_some();
  discovery_.read_some();
  if (entries[0].revents != 0) handle_requests();
  supervisor_.handle(all.subspan(first_of_supervisor, Supervisor::kEntries),
                     [this](const GuardEvent& event) { handle(event); });
  if (ready == 0 && limited) {
    outputs_.finish();
    supervisor_.give_up_output();
  }
  if (screen_.is_closed(Channel::kOut) && runs()) {
    report_.output_closed = true;
    end();
  }
  act();
}

void Driver::handle(const GuardEvent& event) {
  if (event.kind == GuardEvent::Kind::kNotStarted) not_started(event);
  if (event.kind == GuardEvent::Kind::kEnded) process_ended(event);
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
  fail(fmt::format("cannot start {}: {}", kit_.program, ::strerrordesc_np(event.value)));
}

void Driver::process_ended(const GuardEvent& event) {
  if (discovery_.is_own(event.rank)) return take_hosts(discovery_.end(event.value));
  if (const auto number = processes_.worker_of(event.rank)) worker_process_ended(*number, event);
}

void Driver::worker_process_ended(int number, const GuardEvent& event) {
  const TimePoint now = Clock::now();
  const Worker before = worker(number);
  const WorkerEnd how = end_of(event.value);
  processes_.ended(number);
  asks_.erase(number);
  outputs_.drain(number);
  worker_ended(
      state_, now, number, how, elastic_, std::uniform_real_distribution(0.0, 1.0)(random_));
  ElasticEnd end{.host = before.host,
                 .worker = name_of(before),
                 .pid = event.pid,
                 .status = event.value,
                 .after = now - start_,
                 .round = state_.round,
                 .rank = before.rank};
  if (before.phase == Phase::kLeaving) {
    end.how = ElasticEnd::How::kRemoved;
  } else if (how != WorkerEnd::kWell) {
    end.how = runs() ? ElasticEnd::How::kFailed : ElasticEnd::How::kEnded;
  }
  if (end.how == ElasticEnd::How::kFailed) end.last_lines = outputs_.last_lines(number);
  report_.ends.push_back(end);
  if (before.rank) records_.add(end);
  if (runs() && before.rank) {
    fail_meeting(before,
                 fmt::format("(pid {}) {}", event.pid, describe_wait_status(event.value)),
                 WIFSIGNALED(event.value) ? ErrorCause::kKilled : ErrorCause::kExited);
  }
}

void Driver::handle_requests() {
  for (const auto& request : mailroom_.take_requests()) {
    if (request.worker < 0 || request.worker >= std::ssize(state_.workers)) continue;
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

void Driver::worker_asks(int number, std::int64_t request) {
  const Worker before = worker(number);
  if (!is_alive(before.phase)) return;
  asks_[number] = request;
  if (!runs()) return answer(number, {.kind = ElasticAnswer::Kind::kOver, .reason = over_});
  if (before.phase == Phase::kLeaving) {
    return answer(number, {.kind = ElasticAnswer::Kind::kRemoved});
  }
  worker_asked(state_, Clock::now(), number);
  // Other ranks may still wait for this one in the meeting of the round.
  if (before.rank) fail_meeting(before, "asked for another round", ErrorCause::kLeft);
}

void Driver::take_hosts(DiscoveryRun::Result result) {
  if (!runs()) return;
  if (!result.problem.empty()) {
    if (!has_hosts_) throw Error(ErrorKind::kUsage, result.problem);
    if (std::exchange(discovery_problem_, result.problem) != result.problem) {
      say(result.problem + "; the hosts stay as they are");
    }
    return;
  }
  discovery_problem_.clear();
  std::erase_if(result.hosts, [this](const HostSlots& host) { return !is_usable(host.name); });
  hosts_found(state_, result.hosts);
  if (!std::exchange(has_hosts_, true)) take_first_hosts(result.hosts);
}

bool Driver::is_usable(const std::string& host) {
  const std::string problem = starter_.problem_with(host);
  if (problem.empty()) return true;
  if (!has_hosts_) throw Error(ErrorKind::kUsage, problem);
  if (unusable_hosts_.insert(host).second) say(problem);
  return false;
}

void Driver::take_first_hosts(const std::vector<HostSlots>& hosts) {
  int slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots;
  processes_.prepare(std::max(1, std::min(slots, elastic_.max_ranks.value_or(slots))));
}

void Driver::act() {
  const TimePoint now = Clock::now();
  if (supervisor_.stage() == Stage::kFailing && !is_any_alive()) {
    end();
  }
  if (!runs()) return;
  processes_.kill_late(now);
  if (discovery_.advance(now, next_process_)) ++next_process_;
  if (!has_hosts_) return;
  while (runs() && carry_out(decide(Clock::now(), state_, elastic_))) {
  }
}

/// Returns whether there may be more to do.
bool Driver::carry_out(const Decision& decision) {
  struct Visitor {
    Driver& driver;
    const std::string& reason;

    bool operator()(const Wait&) const { return false; }
    bool operator()(const StartWorker& action) const {
      driver.start_worker(action);
      return true;
    }
    bool operator()(const BeginRound& action) const {
      driver.begin_round(action);
      return true;
    }
    bool operator()(const TellChanges& action) const {
      driver.state_.told = action.changes;
      driver.mailroom_.tell_changes(driver.state_.round, action.changes);
      return true;
    }
    bool operator()(const RemoveWorker& action) const {
      driver.remove_worker(action.worker, reason);
      return true;
    }
    bool operator()(const StopWorker& action) const {
      driver.stop_worker(action.worker, reason);
      return true;
    }
    bool operator()(const EndWell&) const {
      driver.end();
      return false;
    }
    bool operator()(const EndBadly& action) const {
      driver.fail(action.why);
      return false;
    }
  };
  // The report at the end has the failures that end the job.
  if (!std::holds_alternative<EndBadly>(decision.action)) say_failures();
  return std::visit(Visitor{*this, decision.reason}, decision.action);
}

void Driver::start_worker(const StartWorker& action) {
  const int attempt =
      1 + static_cast<int>(std::ranges::count_if(state_.workers, [&](const Worker& w) {
        return w.host == action.host && w.slot == action.slot;
      }));
  const int number = worker_started(state_, Clock::now(), action.host, action.slot);
  try {
    processes_.start(worker(number), next_process_++, attempt);
  } catch (const Error& error) {
    processes_.ended(number);
    worker_leaves(state_, Clock::now(), number);
    worker_ended(state_, Clock::now(), number, WorkerEnd::kFailed, elastic_, 0);
    fail(fmt::format("cannot start a worker on {}: {}", action.host, error.message()));
  }
}

void Driver::begin_round(const BeginRound& action) {
  round_began(state_, Clock::now(), action.members);
  const int size = static_cast<int>(action.members.size());
  report_.rounds.push_back({.number = state_.round, .size = size, .after = Clock::now() - start_});
  if (state_.round > 1) {
    say(fmt::format("round {} begins with {} worker{}", state_.round, size, size == 1 ? "" : "s"));
  }
  const std::string records = records_.begin(state_.round);
  for (const Member& member : action.members) {
    ElasticAnswer place{.kind = ElasticAnswer::Kind::kPlace, .place = member.place};
    place.place.records = records;
    answer(member.worker, place);
  }
}

void Driver::remove_worker(int number, const std::string& reason) {
  say(fmt::format("{} is removed: {}", name_of(worker(number)), reason));
  worker_leaves(state_, Clock::now(), number);
  answer(number, {.kind = ElasticAnswer::Kind::kRemoved});
}

void Driver::stop_worker(int number, const std::string& reason) {
  say(fmt::format("{} is ended: {}", name_of(worker(number)), reason));
  worker_stopped(state_, Clock::now(), number);
  processes_.stop(number);
}

void Driver::answer(int number, const ElasticAnswer& answer) {
  const auto request = asks_.find(number);
  if (request == asks_.end()) return;
  mailroom_.answer(number, request->second, answer);
  asks_.erase(request);
}

void Driver::fail_meeting(const Worker& lost, const std::string& what, ErrorCause cause) {
  mailroom_.fail_meeting(
      state_.round,
      Error(ErrorKind::kPeerLost,
            fmt::format("rank {}, worker {}, {} before the group of round {} was made",
                        *lost.rank,
                        name_of(lost),
                        what,
                        state_.round),
            {.rank = lost.rank, .host = lost.host, .cause = cause}));
}

/// Workers that wait for a round get the reason at once, the others when they ask.
void Driver::fail(const std::string& why) {
  if (!runs()) return;
  report_.why_badly = over_ = why;
  supervisor_.fail();
  for (const Worker& each : state_.workers) {
    answer(each.number, {.kind = ElasticAnswer::Kind::kOver, .reason = why});
  }
}

void Driver::end() { supervisor_.stop(SIGTERM, SignalOrigin::kProcess); }

bool Driver::is_any_alive() const {
  return std::ranges::any_of(state_.workers, is_alive, &Worker::phase);
}

void Driver::say(const std::string& text) {
  screen_.line(Channel::kErr, "", fmt::format("peal: {}", text));
}

/// Reports the failures that have not been reported yet.
void Driver::say_failures() {
  for (ElasticEnd& end : report_.ends) {
    if (end.how != ElasticEnd::How::kFailed || std::exchange(end.is_shown, true)) continue;
    const auto host = std::ranges::find(state_.hosts, end.host, &Host::name);
    const Duration left =
        host == state_.hosts.end() ? Duration(0) : host->barred_until - Clock::now();
    say(fmt::format("{}; {} gets no new workers for {} s",
                    describe(end),
                    end.host,
                    std::max(0, shown_seconds(left))));
  }
}

}  // namespace peal::launch::elastic

namespace peal::launch {

ElasticReport run_elastic(const LaunchOptions& options,
                          const ElasticOptions& elastic,
                          const JobContext& job,
                          const RecordPlace& records,
                          const std::string& program,
                          const Variables& inherited,
                          Target out,
                          Target err) {
  check(elastic);
  return elastic::Driver(options, elastic, job, records, program, inherited, out, err).run();
}

}  // namespace peal::launch
