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
#include "peal/observe/flight_folder.h"

namespace peal::launch::elastic {
namespace {

using rendezvous::ElasticAnswer;

/// How often the driver looks at the clock.
constexpr Timeout kTick{100};

/// Empty: no records.
std::string round_folder(const std::string& folder, int round) {
  return folder.empty() ? "" : observe::round_folder_in(folder, round);
}

}  // namespace

Driver::Driver(const LaunchOptions& options,
               const ElasticOptions& elastic,
               const JobContext& job,
               const RecordPlace& records,
               const HostGuardMaker& make_guard,
               const Variables& inherited,
               Target out,
               Target err,
               SignalReader& signals)
    : options_(options),
      elastic_(elastic),
      job_(job),
      records_(records, job.id),
      screen_(out, err),
      outputs_(screen_, options),
      supervisor_(signals,
                  options.grace,
                  [&] {
                    auto guard = make_guard({.mask = signals.previous_mask(),
                                             .grace = options.grace,
                                             .starts = Starts::kAlsoLater});
                    hosts_ = guard.get();
                    return guard;
                  }),
      processes_(options, outputs_, *hosts_),
      discovery_(elastic.discovery_script, elastic.slots, inherited, *hosts_),
      mailroom_(config_from(fixed_environment(common_environment(options, job, inherited))),
                job.id,
                elastic.hosts_are) {
  state_.begun = start_;
  if (!elastic.hosts.empty()) take_hosts({.hosts = elastic.hosts});
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
  handle_hosts();
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

void Driver::act() {
  const TimePoint now = Clock::now();
  if (supervisor_.stage() == Stage::kFailing && !is_any_alive()) {
    end();
  }
  if (!runs()) return;
  const bool must_warn = now >= warning_time_ || (outer_flag_ && outer_flag_->is_set());
  if (must_warn && !std::exchange(has_warned_, true)) supervisor_.guard().warn();
  processes_.kill_late(now);
  if (!elastic_.discovery_script.empty() && discovery_.advance(now, next_process_)) {
    ++next_process_;
  }
  if (!has_hosts_) return;
  while (runs()) {
    const Decision decision = decide(Clock::now(), state_, elastic_);
    // The report at the end has the failures that end the job.
    if (!std::holds_alternative<EndBadly>(decision.action)) say_failures();
    if (std::holds_alternative<Wait>(decision.action)) return;
    carry_out(decision);
    handle_hosts();
  }
}

void Driver::carry_out(const Decision& decision) {
  struct Visitor {
    Driver& driver;
    const std::string& reason;

    void operator()(const Wait&) const {}
    void operator()(const ConnectHost& action) const { driver.connect_host(action.host); }
    void operator()(const LeaveHost& action) const { driver.leave_host(action.host); }
    void operator()(const StartWorker& action) const { driver.start_worker(action); }
    void operator()(const BeginRound& action) const { driver.begin_round(action); }
    void operator()(const TellChanges& action) const { driver.tell_changes(action.changes); }
    void operator()(const RemoveWorker& action) const {
      driver.remove_worker(action.worker, reason);
    }
    void operator()(const StopWorker& action) const { driver.stop_worker(action.worker, reason); }
    void operator()(const EndWell&) const { driver.end(); }
    void operator()(const EndBadly& action) const { driver.end_badly(action.why); }
  };
  std::visit(Visitor{*this, decision.reason}, decision.action);
}

void Driver::connect_host(const std::string& host) {
  host_connects(state_, Clock::now(), host);
  hosts_->connect(host);
}

void Driver::leave_host(const std::string& host) {
  host_left(state_, host);
  hosts_->leave(host);
}

void Driver::start_worker(const StartWorker& action) {
  const int attempt =
      1 + static_cast<int>(std::ranges::count_if(state_.workers, [&](const Worker& w) {
        return w.host == action.host && w.slot == action.slot;
      }));
  const int number = worker_started(state_, Clock::now(), action.host, action.slot);
  try {
    processes_.start(worker(number), kits_.at(action.host), next_process_++, attempt);
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
  if (state_.round > kRoundsKept) hosts_->forget_round(state_.round - kRoundsKept);
  for (const Member& member : action.members) {
    const auto& own = kits_.at(member.place.hostname).records;
    report_.rounds.back().ranks[member.place.hostname].push_back(member.place.rank);
    ElasticAnswer place{.kind = ElasticAnswer::Kind::kPlace, .place = member.place};
    place.place.records = own ? round_folder(*own, state_.round) : records;
    answer(member.worker, place);
  }
}

void Driver::tell_changes(rendezvous::HostChanges changes) {
  state_.told = changes;
  mailroom_.tell_changes(state_.round, changes);
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

void Driver::end_badly(const std::string& why) {
  note_refusals();
  fail(why);
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
    say(fmt::format(
        "{}; {} gets no new workers for {} s", describe(end), end.host, shown_pause_of(end.host)));
  }
}

int Driver::shown_pause_of(const std::string& name) const {
  const auto host = std::ranges::find(state_.hosts, name, &Host::name);
  if (host == state_.hosts.end()) return 0;
  const auto left = std::chrono::ceil<std::chrono::seconds>(host->barred_until - Clock::now());
  return std::max(0, static_cast<int>(left.count()));
}

}  // namespace peal::launch::elastic

namespace peal::launch {

ElasticReport run_elastic(const LaunchOptions& options,
                          const ElasticOptions& elastic,
                          const JobContext& job,
                          const RecordPlace& records,
                          const HostGuardMaker& make_guard,
                          const Variables& inherited,
                          Target out,
                          Target err,
                          SignalReader& signals) {
  check(elastic);
  return elastic::Driver(options, elastic, job, records, make_guard, inherited, out, err, signals)
      .run();
}

}  // namespace peal::launch
