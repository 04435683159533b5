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
#include "peal/system/cpus.h"
#include "peal/system/open_files.h"
#include "peal/system/process_state.h"

namespace peal::launch::elastic {
namespace {

/// How long workers have, once the job has failed, to fail by themselves and to print why.
constexpr Timeout kOwnEnds{3000};
/// How long the outputs may stay open and silent after all processes have ended.
constexpr Timeout kLastOutput{1000};
/// How long to kill the processes of a lost guard before the report says that they hang.
constexpr Timeout kKillingLimit{5000};
/// How often the driver looks at the clock.
constexpr Timeout kTick{100};

std::set<pid_t> own_descendants() {
  const std::vector<pid_t> found = descendants_of(::getpid());
  return {found.begin(), found.end()};
}

GuardDuty duty_of(const LaunchOptions& options, const SignalReader& signals) {
  return {.mask = signals.previous_mask(), .grace = options.grace, .starts = Starts::kAlsoLater};
}

int shown_seconds(Duration duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::seconds>(duration).count());
}

}  // namespace

Driver::Driver(const LaunchOptions& options,
               const ElasticOptions& elastic,
               const Job& job,
               const std::string& program,
               const Variables& inherited,
               Target out,
               Target err)
    : options_(options),
      elastic_(elastic),
      kit_{.program = program, .common = common_environment(options, job, inherited)},
      children_before_(own_descendants()),
      screen_(out, err),
      outputs_(screen_, options.log_directory, options.timestamps),
      guard_(duty_of(options, signals_)),
      starter_(guard_),
      discovery_(elastic.discovery_script, elastic.slots, inherited, starter_),
      mailroom_(config_from(fixed_environment(kit_.common)), kit_.common.at("PEAL_JOB")) {
  state_.begun = start_;
  kit_.driver = mailroom_.address();
}

ElasticReport Driver::run() {
  while (!is_over()) wait_and_handle();
  report_.after = Clock::now() - start_;
  report_.lost_output = outputs_.lost();
  for (const Channel channel : {Channel::kOut, Channel::kErr}) {
    if (screen_.lost(channel).error != 0) report_.lost_output.push_back(screen_.lost(channel));
  }
  return report_;
}

bool Driver::is_over() const {
  return stage_ == Stage::kAbandoned ||
         (stage_ == Stage::kGone && outputs_.are_closed() && screen_.is_empty());
}

Timeout Driver::longest_wait() const { return stage_ == Stage::kGone ? kLastOutput : kTick; }

void Driver::wait_and_handle() {
  std::vector<pollfd> entries = {{signals_.fd(), POLLIN, 0},
                                 {stage_ == Stage::kGone ? -1 : guard_.events(), POLLIN, 0},
                                 {mailroom_.news(), POLLIN, 0},
                                 {screen_.waits_for(), POLLOUT, 0}};
  const std::size_t own = entries.size();
  discovery_.add_to(entries);
  const std::size_t first_output = entries.size();
  outputs_.add_to(entries);
  const int ready =
      ::poll(entries.data(), entries.size(), static_cast<int>(longest_wait().count()));
  outputs_.handle(std::span(entries).subspan(first_output));  // before the list of workers changes
  screen_.write_some();
  if (first_output > own) discovery_.read_some();
  // Signals before events: a worker that was ended by a signal to the whole job has not failed.
  if (entries[0].revents != 0) handle_signals();
  if (entries[2].revents != 0) handle_requests();
  if (entries[1].revents != 0) handle_events();
  if (stage_ == Stage::kGone && ready == 0) {
    outputs_.finish();
    if (report_.signal != 0) stage_ = Stage::kAbandoned;  // the reader of the output is stuck
  }
  if (screen_.is_closed(Channel::kOut) && stage_ == Stage::kRunning) {
    report_.output_closed = true;
    stop(SIGTERM, SignalOrigin::kProcess);
  }
  act();
}

void Driver::handle_signals() {
  while (const auto taken = signals_.try_next()) {
    switch (taken->signal) {
      case SIGUSR1:
      case SIGUSR2:
      case SIGCONT:
        guard_.pass_on(taken->signal, taken->origin);
        break;
      case SIGTSTP:
        guard_.pass_on(SIGTSTP, taken->origin);
        ::raise(SIGSTOP);  // returns when the shell resumes the job, which also sends SIGCONT
        break;
      default:
        end_by_signal(*taken);
    }
  }
}

void Driver::end_by_signal(SignalReader::Taken taken) {
  switch (stage_) {
    case Stage::kRunning:
      report_.signal = taken.signal;
      return stop(taken.signal, taken.origin);
    case Stage::kFailing:
      return stop(taken.signal, taken.origin);
    case Stage::kStopping:
      return guard_.kill();
    case Stage::kGone:
    case Stage::kAbandoned:
      stage_ = Stage::kAbandoned;
  }
}

void Driver::handle_events() {
  while (const auto event = guard_.try_next()) handle(*event);
  if (guard_.has_ended() && stage_ != Stage::kGone) guard_is_lost();
}

void Driver::handle(const GuardEvent& event) {
  switch (event.kind) {
    case GuardEvent::Kind::kNotStarted:
      return not_started(event);
    case GuardEvent::Kind::kStopped:
      return;
    case GuardEvent::Kind::kEnded:
      return process_ended(event);
    case GuardEvent::Kind::kGone:
      report_.survivors = event.value;
      stage_ = Stage::kGone;
      return;
  }
}

void Driver::not_started(const GuardEvent& event) {
  if (discovery_.is_own(event.rank)) {
    return take_hosts(discovery_.end_without_start(event.value));
  }
  const auto found = worker_of_process_.find(event.rank);
  if (found == worker_of_process_.end()) return;
  worker_leaves(state_, Clock::now(), found->second);
  worker_ended(state_, Clock::now(), found->second, WorkerEnd::kFailed, elastic_, 0);
  if (stage_ != Stage::kRunning) return;
  report_.start_error = event.value;
  fail(fmt::format("cannot start {}: {}", kit_.program, ::strerrordesc_np(event.value)));
}

void Driver::process_ended(const GuardEvent& event) {
  if (discovery_.is_own(event.rank)) return take_hosts(discovery_.end(event.value));
  const auto found = worker_of_process_.find(event.rank);
  if (found == worker_of_process_.end()) return;
  const int number = found->second;
  worker_of_process_.erase(found);
  worker_process_ended(number, event);
}

void Driver::worker_process_ended(int number, const GuardEvent& event) {
  const TimePoint now = Clock::now();
  const Worker before = worker(number);
  Process& own = process(number);
  own.asks.reset();
  if (own.share) used_shares_.erase(*own.share);
  outputs_.drain(number);
  ElasticEnd end{.worker = name_of(before),
                 .pid = event.pid,
                 .status = event.value,
                 .after = now - start_,
                 .round = state_.round,
                 .rank = before.rank};
  const WorkerEnd how = failed(event.value) ? WorkerEnd::kFailed : WorkerEnd::kWell;
  const double part = std::uniform_real_distribution(0.0, 1.0)(random_);
  worker_ended(state_, now, number, how, elastic_, part);
  if (before.phase == Phase::kLeaving) {
    end.how = ElasticEnd::How::kRemoved;
  } else if (how == WorkerEnd::kFailed) {
    end.how = stage_ == Stage::kRunning ? ElasticEnd::How::kFailed : ElasticEnd::How::kEnded;
  }
  if (end.how == ElasticEnd::How::kFailed) end.last_lines = outputs_.last_lines(number);
  report_.ends.push_back(end);
  if (stage_ != Stage::kRunning) return;
  if (before.rank) {
    fail_meeting(before,
                 fmt::format("(pid {}) {}", event.pid, describe_wait_status(event.value)),
                 WIFSIGNALED(event.value) ? ErrorCause::kKilled : ErrorCause::kExited);
  }
  if (end.how != ElasticEnd::How::kFailed) return;
  const auto host = std::ranges::find(state_.hosts, before.host, &Host::name);
  say(fmt::format("{}; {} gets no new workers for {} s",
                  describe(end),
                  before.host,
                  host == state_.hosts.end() ? 0 : shown_seconds(host->barred_until - now)));
}

void Driver::handle_requests() {
  using Kind = rendezvous::ElasticRequest::Kind;
  for (const auto& request : mailroom_.take_requests()) {
    if (request.worker < 0 || request.worker >= std::ssize(state_.workers)) continue;
    if (request.kind == Kind::kNextRound) worker_asks(request.worker, request.number);
    if (request.kind == Kind::kSynchronized) worker_synchronized(state_, request.worker);
    if (request.kind == Kind::kFinish) worker_finishes(state_, Clock::now(), request.worker);
  }
}

void Driver::worker_asks(int number, std::int64_t request) {
  const Worker before = worker(number);
  if (!is_alive(before.phase)) return;
  process(number).asks = request;
  if (stage_ != Stage::kRunning) {
    return answer(number, {.kind = rendezvous::ElasticAnswer::Kind::kOver, .reason = over_});
  }
  if (before.phase == Phase::kLeaving) {
    return answer(number, {.kind = rendezvous::ElasticAnswer::Kind::kRemoved});
  }
  worker_asked(state_, Clock::now(), number);
  // Other ranks may still wait for this one in the meeting of the round.
  if (before.rank) fail_meeting(before, "asked for another round", ErrorCause::kLeft);
}

void Driver::take_hosts(DiscoveryRun::Result result) {
  if (stage_ != Stage::kRunning) return;
  std::erase_if(result.hosts, [&](const FoundHost& host) {
    const auto [known, is_new] = is_here_.try_emplace(host.name, false);
    if (is_new) known->second = is_this_machine(host.name);
    if (known->second) return false;
    const Error error = remote_host_error(host.name);
    if (!has_hosts_) throw Error(error);
    if (is_new) say(std::string(error.message()));
    return true;
  });
  if (!result.problem.empty()) {
    if (!has_hosts_) throw Error(ErrorKind::kUsage, result.problem);
    if (std::exchange(discovery_problem_, result.problem) != result.problem) {
      say(result.problem + "; the hosts stay as they are");
    }
    return;
  }
  discovery_problem_.clear();
  hosts_found(state_, result.hosts);
  if (std::exchange(has_hosts_, true)) return;
  int slots = 0;
  for (const FoundHost& host : result.hosts) slots += host.slots;
  const int workers = std::max(1, std::min(slots, elastic_.max_ranks.value_or(slots)));
  shares_ = divide_cores(usable_cores(), workers, cpu_quota());
  constexpr long kForOthers = 64;
  constexpr long kForEach = 16;  // two pipes, two logs, connections to the store; and some to come
  allow_open_files(kForOthers + kForEach * workers, fmt::format("starting {} workers", workers));
}

/// The kernel has killed the workers, and their descendants are children of the launcher now.
void Driver::guard_is_lost() {
  report_.survivors = kill_descendants(Deadline::after(kKillingLimit), children_before_);
  report_.guard_lost = true;
  stage_ = Stage::kGone;
}

void Driver::act() {
  const TimePoint now = Clock::now();
  if (stage_ == Stage::kFailing && (now >= stopping_from_ || !is_any_alive())) {
    stop(SIGTERM, SignalOrigin::kProcess);
  }
  if (stage_ != Stage::kRunning) return;
  kill_late_workers(now);
  if (discovery_.advance(now, next_process_)) ++next_process_;
  if (!has_hosts_) return;
  while (stage_ == Stage::kRunning && carry_out(decide(Clock::now(), state_, elastic_))) {
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
      driver.say(fmt::format("{} is removed: {}", name_of(driver.worker(action.worker)), reason));
      worker_leaves(driver.state_, Clock::now(), action.worker);
      driver.answer(action.worker, {.kind = rendezvous::ElasticAnswer::Kind::kRemoved});
      return true;
    }
    bool operator()(const StopWorker& action) const {
      driver.stop_worker(action.worker, reason);
      return true;
    }
    bool operator()(const EndWell&) const {
      driver.stop(SIGTERM, SignalOrigin::kProcess);
      return false;
    }
    bool operator()(const EndBadly& action) const {
      driver.fail(action.why);
      return false;
    }
  };
  return std::visit(Visitor{*this, decision.reason}, decision.action);
}

void Driver::start_worker(const StartWorker& action) {
  const int attempt =
      1 + static_cast<int>(std::ranges::count_if(state_.workers, [&](const Worker& w) {
        return w.host == action.host && w.slot == action.slot;
      }));
  const int number = worker_started(state_, Clock::now(), action.host, action.slot);
  Process& own = processes_.emplace_back();
  own.number = next_process_++;
  worker_of_process_[own.number] = number;
  const RankCommand command =
      worker_command(options_, kit_, worker(number), own.number, take_share(own));
  const std::string label = attempt == 1
                                ? fmt::format("{}-{}", action.host, action.slot)
                                : fmt::format("{}-{}.{}", action.host, action.slot, attempt);
  const bool has_label = options_.labels != Labels::kNone;
  try {
    const WorkerWriters writers = outputs_.add(
        number, label, has_label ? fmt::format("[{}:{}] ", action.host, action.slot) : "");
    starter_.start(action.host, command, writers.out.get(), writers.err.get());
  } catch (const Error& error) {
    worker_leaves(state_, Clock::now(), number);
    worker_ended(state_, Clock::now(), number, WorkerEnd::kFailed, elastic_, 0);
    fail(fmt::format("cannot start a worker on {}: {}", action.host, error.message()));
  }
}

CoreShare Driver::take_share(Process& own) {
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (!used_shares_.insert(i).second) continue;
    own.share = i;
    return shares_[i];
  }
  return {.cpus = {}, .threads = shares_.empty() ? 1 : shares_.front().threads};
}

void Driver::begin_round(const BeginRound& action) {
  round_began(state_, Clock::now(), action.members);
  report_.rounds.push_back({.number = state_.round,
                            .size = static_cast<int>(action.members.size()),
                            .after = Clock::now() - start_});
  if (state_.round > 1) {
    say(fmt::format("round {} begins with {} workers", state_.round, action.members.size()));
  }
  for (const Member& member : action.members) {
    answer(member.worker, {.kind = rendezvous::ElasticAnswer::Kind::kPlace, .place = member.place});
  }
}

void Driver::stop_worker(int number, const std::string& reason) {
  say(fmt::format("{} is ended: {}", name_of(worker(number)), reason));
  worker_stopped(state_, Clock::now(), number);
  starter_.signal(process(number).number, SIGTERM);
  starter_.signal(process(number).number, SIGCONT);  // a stopped process cannot end
  process(number).killed_from = Clock::now() + options_.grace;
}

void Driver::kill_late_workers(TimePoint now) {
  for (Process& own : processes_) {
    if (now < own.killed_from) continue;
    own.killed_from = TimePoint::max();
    starter_.signal(own.number, SIGKILL);
  }
}

void Driver::answer(int number, const rendezvous::ElasticAnswer& answer) {
  const auto request = std::exchange(process(number).asks, std::nullopt);
  if (request) mailroom_.answer(number, *request, answer);
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
  if (stage_ != Stage::kRunning) return;
  report_.why_badly = over_ = why;
  stage_ = Stage::kFailing;
  stopping_from_ = Clock::now() + kOwnEnds;
  for (const Worker& each : state_.workers) {
    answer(each.number, {.kind = rendezvous::ElasticAnswer::Kind::kOver, .reason = why});
  }
}

void Driver::stop(int signal, SignalOrigin origin) {
  if (over_.empty()) over_ = "the launcher ends the job";
  stage_ = Stage::kStopping;
  guard_.stop(signal, origin);
}

bool Driver::is_any_alive() const {
  return std::ranges::any_of(state_.workers, is_alive, &Worker::phase);
}

void Driver::say(const std::string& text) {
  screen_.line(Channel::kErr, "", fmt::format("peal: {}", text));
}

}  // namespace peal::launch::elastic

namespace peal::launch {

ElasticReport run_elastic(const LaunchOptions& options,
                          const ElasticOptions& elastic,
                          const Job& job,
                          const std::string& program,
                          const Variables& inherited,
                          Target out,
                          Target err) {
  check(elastic);
  return elastic::Driver(options, elastic, job, program, inherited, out, err).run();
}

}  // namespace peal::launch
