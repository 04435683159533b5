#include "peal/launch/launcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "peal/launch/flights.h"
#include "peal/launch/outer_stop_flag.h"
#include "peal/launch/outputs.h"
#include "peal/launch/supervisor.h"

namespace peal::launch {
namespace {

GuardDuty duty_of(const LaunchOptions& options,
                  const std::vector<RankCommand>& ranks,
                  const RankFunction& function,
                  const Outputs& outputs) {
  return GuardDuty{
      .ranks = ranks,
      .function = function,
      .outputs = outputs.writers(),
      .terminal_group = ::isatty(STDIN_FILENO) != 0 ? ::getpgrp() : 0,
      .grace = options.grace,
  };
}

/// One launch: waits for signals, for the guard's events and for output, and reacts.
class Launch final {
 public:
  Launch(const LaunchOptions& options,
         const std::vector<RankCommand>& ranks,
         Target out,
         Target err,
         SignalReader& signals,
         const RankFunction& function);
  Launch(const LaunchOptions& options,
         const std::vector<RankCommand>& ranks,
         Target out,
         Target err,
         SignalReader& signals,
         const GuardMaker& make_guard,
         observe::EndPlace ends,
         LaunchWatch* watch);
  LaunchReport run();

 private:
  bool is_over() const;
  bool waits_for_last_output() const;
  int longest_wait() const;
  void wait_and_handle();
  void handle(const GuardEvent& event);
  void rank_ended(const GuardEvent& event);
  void rank_lost(Rank rank);
  void add(ProcessEnd end);
  bool is_decided() const;
  void check_warning();
  void check_time_limit();
  void look();
  std::size_t index_of(Rank rank) const {
    return static_cast<std::size_t>(rank - ranks_.front().rank);
  }

  const LaunchOptions& options_;
  const std::vector<RankCommand>& ranks_;
  const observe::EndPlace ends_;
  LaunchWatch* const watch_ = nullptr;
  const TimePoint start_ = Clock::now();
  const TimePoint warning_time_ = warning_time(options_, start_);
  /// The flag of this process, if an outer launcher has started it: as a node of a submitted job.
  const std::optional<StopFlag> outer_flag_ = watch_ == nullptr ? outer_stop_flag() : std::nullopt;
  std::set<Rank> stopped_ranks_;
  bool has_lost_ = false;  // a host, since the last look at the events
  LaunchReport report_;
  Outputs outputs_;
  Supervisor supervisor_;
};

Launch::Launch(const LaunchOptions& options,
               const std::vector<RankCommand>& ranks,
               Target out,
               Target err,
               SignalReader& signals,
               const RankFunction& function)
    : options_(options),
      ranks_(ranks),
      ends_(end_place_of(ranks)),
      outputs_(options, out, err),
      supervisor_(signals, duty_of(options, ranks, function, outputs_)) {
  outputs_.close_writers();
  report_.grace = options.grace;
  report_.node = options.node.node;
  report_.nodes = options.node.nodes;
}

Launch::Launch(const LaunchOptions& options,
               const std::vector<RankCommand>& ranks,
               Target out,
               Target err,
               SignalReader& signals,
               const GuardMaker& make_guard,
               observe::EndPlace ends,
               LaunchWatch* watch)
    : options_(options),
      ranks_(ranks),
      ends_(std::move(ends)),
      watch_(watch),
      outputs_(options, out, err),
      supervisor_(signals, options.grace, make_guard) {
  const std::vector<int> writers = outputs_.writers();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const bool gets_input = i == 0;
    supervisor_.guard().start(
        ranks[i],
        {.out = writers[2 * i], .err = writers[2 * i + 1], .in = gets_input ? STDIN_FILENO : -1});
  }
  outputs_.close_writers();
  report_.grace = options.grace;
  if (watch_ != nullptr) watch_->started();
}

LaunchReport Launch::run() {
  while (!is_over()) wait_and_handle();
  const auto& [signal, late_signal, cut_short, guard_lost, survivors] = supervisor_.intervention();
  report_.signal = signal;
  report_.late_signal = late_signal;
  report_.cut_short = cut_short;
  report_.guard_lost = guard_lost;
  report_.survivors = survivors;
  report_.after = Clock::now() - start_;
  report_.lost_output = outputs_.lost();
  for (ProcessEnd& end : report_.ends) {
    if (failed_by_itself(end)) end.last_lines = outputs_.last_lines(end.rank);
  }
  return report_;
}

bool Launch::is_over() const {
  return supervisor_.stage() == Stage::kAbandoned ||
         (supervisor_.stage() == Stage::kGone && outputs_.is_done());
}

bool Launch::waits_for_last_output() const {
  return supervisor_.stage() == Stage::kGone &&
         (supervisor_.intervention().signal != 0 || !outputs_.is_full());
}

/// In milliseconds, for poll(2).
int Launch::longest_wait() const {
  if (supervisor_.stage() == Stage::kFailing) return supervisor_.milliseconds_to_fail();
  if (waits_for_last_output()) return static_cast<int>(kLastOutput.count());
  if (watch_ != nullptr) return static_cast<int>(kLookEvery.count());
  if (supervisor_.stage() != Stage::kRunning) return -1;
  TimePoint next = options_.time_limit ? start_ + *options_.time_limit : TimePoint::max();
  if (!report_.was_warned) next = std::min(next, warning_time_);
  if (!report_.was_warned && outer_flag_) next = std::min(next, Clock::now() + kLookEvery);
  if (next == TimePoint::max()) return -1;
  return static_cast<int>(Deadline(next).within(std::chrono::hours(1)).left().count());
}

void Launch::check_warning() {
  if (report_.was_warned || supervisor_.stage() != Stage::kRunning) return;
  const bool outer_is_warned = outer_flag_ && outer_flag_->is_set();
  if (Clock::now() < warning_time_ && !outer_is_warned) return;
  report_.was_warned = true;
  supervisor_.guard().warn();
  if (watch_ != nullptr) watch_->warned();
}

void Launch::check_time_limit() {
  if (!options_.time_limit || supervisor_.stage() != Stage::kRunning) return;
  if (Clock::now() < start_ + *options_.time_limit) return;
  report_.time_limit = options_.time_limit;
  if (report_.was_warned) return supervisor_.stop(SIGTERM, SignalOrigin::kProcess);
  supervisor_.ask_to_stop(SIGTERM, SignalOrigin::kProcess);
}

void Launch::look() {
  if (watch_ == nullptr || !watch_->look() || supervisor_.stage() != Stage::kRunning) return;
  report_.was_cancelled = true;
  supervisor_.ask_to_stop(SIGTERM, SignalOrigin::kProcess);
}

void Launch::wait_and_handle() {
  std::vector<pollfd> entries;
  supervisor_.add_to(entries);
  outputs_.add_to(entries);
  const bool limited = waits_for_last_output();
  const int ready = ::poll(entries.data(), entries.size(), longest_wait());
  const std::span all(entries);
  supervisor_.handle(all.first(Supervisor::kEntries),
                     [this](const GuardEvent& event) { handle(event); });
  outputs_.handle(all.subspan(Supervisor::kEntries));
  // The cause is known, so the other ranks need no time to fail by themselves.
  if (std::exchange(has_lost_, false)) supervisor_.stop(SIGTERM, SignalOrigin::kProcess);
  check_warning();
  check_time_limit();
  look();
  if (ready == 0 && limited) {
    outputs_.finish();
    supervisor_.give_up_output();
  }
  if (outputs_.is_closed() && supervisor_.stage() == Stage::kRunning) {
    report_.output_closed = true;
    supervisor_.stop(SIGTERM, SignalOrigin::kProcess);
  }
}

void Launch::handle(const GuardEvent& event) {
  switch (event.kind) {
    case GuardEvent::Kind::kNotStarted:
      report_.start_failure =
          StartFailure{event.rank, ranks_[index_of(event.rank)].program, event.value};
      return supervisor_.stop(SIGTERM, SignalOrigin::kProcess);
    case GuardEvent::Kind::kStopped:
      stopped_ranks_.insert(event.rank);
      return;
    case GuardEvent::Kind::kEnded:
      return rank_ended(event);
    case GuardEvent::Kind::kLost:
      return rank_lost(event.rank);
    case GuardEvent::Kind::kAfterEnd:
    case GuardEvent::Kind::kGone:
      return;
  }
}

void Launch::rank_ended(const GuardEvent& event) {
  const TimePoint now = Clock::now();
  ProcessEnd end{event.rank, event.pid, event.value, now - start_};
  end.ended_by = supervisor_.ender_of(end.status, now);
  end.was_stopped = stopped_ranks_.contains(end.rank);
  end.out_of_memory = out_of_memory(event.detail);
  end.container_start = event.detail.container_start;
  add(std::move(end));
}

/// A lost rank counts as killed, because its exit code is not known.
void Launch::rank_lost(Rank rank) {
  ProcessEnd end{.rank = rank, .status = SIGKILL, .after = Clock::now() - start_};
  if (supervisor_.stage() == Stage::kStopping) end.ended_by = EndedBy::kRequest;
  end.lost = supervisor_.guard().why_lost(rank);
  has_lost_ = supervisor_.stage() < Stage::kStopping;
  add(std::move(end));
}

void Launch::add(ProcessEnd end) {
  end.host = ranks_[index_of(end.rank)].host;
  leave_end(ends_, end);
  if (watch_ != nullptr) watch_->ended(end);
  const bool is_failure = failed(end.status);
  report_.ends.push_back(std::move(end));
  if (is_failure) supervisor_.fail();
  if (supervisor_.stage() == Stage::kRunning && is_decided()) {
    report_.is_decided = true;
    supervisor_.stop(SIGTERM, SignalOrigin::kProcess);
  }
}

/// While the launch runs, no rank has failed.
bool Launch::is_decided() const {
  return !options_.deciding.empty() && std::ranges::all_of(options_.deciding, [&](Rank rank) {
    return std::ranges::count(report_.ends, rank, &ProcessEnd::rank) > 0;
  });
}

}  // namespace

LaunchReport run(const LaunchOptions& options,
                 const std::vector<RankCommand>& ranks,
                 Target out,
                 Target err,
                 SignalReader& signals,
                 const RankFunction& function) {
  return Launch(options, ranks, out, err, signals, function).run();
}

LaunchReport run(const LaunchOptions& options,
                 const std::vector<RankCommand>& ranks,
                 Target out,
                 Target err,
                 SignalReader& signals,
                 const GuardMaker& make_guard,
                 const observe::EndPlace& ends,
                 LaunchWatch* watch) {
  return Launch(options, ranks, out, err, signals, make_guard, ends, watch).run();
}

}  // namespace peal::launch
