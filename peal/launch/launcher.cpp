#include "peal/launch/launcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <span>

#include "peal/launch/flights.h"
#include "peal/launch/guard.h"
#include "peal/launch/outputs.h"
#include "peal/launch/process_tree.h"
#include "peal/launch/signals.h"

namespace peal::launch {
namespace {

/// How long the other ranks have, once a rank has failed, to fail by themselves and to print why.
/// Then the launcher ends them. The rank that fails first is not always the cause. Must be longer
/// than ~ProcessGroup delays an exception (a second, and 200 ms for its last messages), since the
/// rank prints its error only after that. Costs nothing unless a rank lingers.
constexpr Timeout kOwnEnds{3000};
/// How long the outputs may stay open and silent after all processes have ended.
constexpr Timeout kLastOutput{1000};
/// How long to kill the processes of a lost guard before the report says that they hang.
constexpr Timeout kKillingLimit{5000};

GuardDuty duty_of(const LaunchOptions& options,
                  const std::vector<RankCommand>& ranks,
                  const RankFunction& function,
                  const SignalReader& signals,
                  const Outputs& outputs) {
  return GuardDuty{
      .ranks = ranks,
      .function = function,
      .outputs = outputs.writers(),
      .terminal_group = ::isatty(STDIN_FILENO) != 0 ? ::getpgrp() : 0,
      .mask = signals.previous_mask(),
      .grace = options.grace,
  };
}

std::set<pid_t> own_descendants() {
  const std::vector<pid_t> found = descendants_of(::getpid());
  return {found.begin(), found.end()};
}

/// One launch: waits for signals, for the guard's events and for output, and reacts.
class Launch final {
 public:
  Launch(const LaunchOptions& options,
         const std::vector<RankCommand>& ranks,
         Target out,
         Target err,
         const RankFunction& function);
  LaunchReport run();

 private:
  enum class Stage : unsigned char {
    kRunning,
    kFailing,    // a rank has failed, and others may be about to fail
    kStopping,   // the launcher ends the ranks
    kGone,       // all processes have ended; their output remains to be shown
    kAbandoned,  // as kGone, but the remaining output is dropped
  };

  bool is_over() const;
  bool waits_for_last_output() const;
  int longest_wait() const;
  void wait_and_handle();
  void handle_signals();
  void end_by_signal(SignalReader::Taken taken);
  void handle_events();
  void handle(const GuardEvent& event);
  void rank_ended(const GuardEvent& event);
  void guard_is_lost();
  void stop(int signal, SignalOrigin origin);
  void kill_at_once(int signal);

  const LaunchOptions& options_;
  const std::vector<RankCommand>& ranks_;
  const observe::EndPlace ends_;
  const TimePoint start_ = Clock::now();
  Stage stage_ = Stage::kRunning;
  TimePoint stopping_from_ = TimePoint::max();  // then ranks that have not failed are ended
  TimePoint killing_from_ = TimePoint::max();
  std::set<Rank> stopped_ranks_;
  LaunchReport report_;
  const std::set<pid_t> children_before_;  // of the program, with their descendants
  Outputs outputs_;
  OrphanAdoption adoption_;
  SignalReader signals_;
  Guard guard_;
};

Launch::Launch(const LaunchOptions& options,
               const std::vector<RankCommand>& ranks,
               Target out,
               Target err,
               const RankFunction& function)
    : options_(options),
      ranks_(ranks),
      ends_(end_place_of(ranks)),
      children_before_(own_descendants()),
      outputs_(options, out, err),
      guard_(duty_of(options, ranks, function, signals_, outputs_)) {
  outputs_.close_writers();
  report_.grace = options.grace;
}

LaunchReport Launch::run() {
  while (!is_over()) wait_and_handle();
  report_.after = Clock::now() - start_;
  report_.lost_output = outputs_.lost();
  for (ProcessEnd& end : report_.ends) {
    if (failed_by_itself(end)) end.last_lines = outputs_.last_lines(end.rank);
  }
  return report_;
}

bool Launch::is_over() const {
  return stage_ == Stage::kAbandoned || (stage_ == Stage::kGone && outputs_.is_done());
}

bool Launch::waits_for_last_output() const {
  return stage_ == Stage::kGone && (report_.signal != 0 || !outputs_.is_full());
}

/// In milliseconds, for poll(2).
int Launch::longest_wait() const {
  if (stage_ == Stage::kFailing) return static_cast<int>(Deadline(stopping_from_).left().count());
  return waits_for_last_output() ? static_cast<int>(kLastOutput.count()) : -1;
}

void Launch::wait_and_handle() {
  std::vector<pollfd> entries = {{signals_.fd(), POLLIN, 0},
                                 {stage_ == Stage::kGone ? -1 : guard_.events(), POLLIN, 0}};
  outputs_.add_to(entries);
  const bool limited = waits_for_last_output();
  const int ready = ::poll(entries.data(), entries.size(), longest_wait());
  // Signals before events: a rank that was ended by a signal to the whole job has not failed.
  if (entries[0].revents != 0) handle_signals();
  if (entries[1].revents != 0) handle_events();
  outputs_.handle(std::span(entries).subspan(2));
  if (stage_ == Stage::kFailing && Clock::now() >= stopping_from_) {
    stop(SIGTERM, SignalOrigin::kProcess);
  }
  if (ready == 0 && limited) {
    outputs_.finish();
    if (report_.signal != 0) stage_ = Stage::kAbandoned;  // the reader of the output is stuck
  }
  if (outputs_.is_closed() && stage_ == Stage::kRunning) {
    report_.output_closed = true;
    stop(SIGTERM, SignalOrigin::kProcess);
  }
}

void Launch::handle_signals() {
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

void Launch::end_by_signal(SignalReader::Taken taken) {
  switch (stage_) {
    case Stage::kRunning:
      report_.signal = taken.signal;
      return stop(taken.signal, taken.origin);
    case Stage::kFailing:
      return stop(taken.signal, taken.origin);
    case Stage::kStopping:
      return kill_at_once(taken.signal);
    case Stage::kGone:
    case Stage::kAbandoned:
      stage_ = Stage::kAbandoned;
  }
}

void Launch::handle_events() {
  while (const auto event = guard_.try_next()) handle(*event);
  if (guard_.has_ended() && stage_ != Stage::kGone) guard_is_lost();
}

void Launch::handle(const GuardEvent& event) {
  switch (event.kind) {
    case GuardEvent::Kind::kNotStarted:
      report_.start_failure = StartFailure{
          event.rank, ranks_[static_cast<std::size_t>(event.rank)].program, event.value};
      stage_ = Stage::kStopping;  // the guard has begun to end the ranks
      killing_from_ = Clock::now() + options_.grace;
      return;
    case GuardEvent::Kind::kStopped:
      stopped_ranks_.insert(event.rank);
      return;
    case GuardEvent::Kind::kEnded:
      return rank_ended(event);
    case GuardEvent::Kind::kGone:
      report_.survivors = event.value;
      stage_ = Stage::kGone;
      return;
  }
}

void Launch::rank_ended(const GuardEvent& event) {
  const TimePoint now = Clock::now();
  ProcessEnd end{event.rank, event.pid, event.value, now - start_};
  if (stage_ == Stage::kStopping) {
    const bool by_sigkill = WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGKILL;
    end.ended_by = by_sigkill && now >= killing_from_ ? EndedBy::kKill : EndedBy::kRequest;
  }
  end.was_stopped = stopped_ranks_.contains(end.rank);
  leave_end(ends_, end);
  report_.ends.push_back(end);
  if (stage_ == Stage::kRunning && failed(end.status)) {
    stage_ = Stage::kFailing;
    stopping_from_ = now + kOwnEnds;
  }
}

/// The kernel has killed the ranks, and their descendants are children of the launcher now.
void Launch::guard_is_lost() {
  report_.survivors = kill_descendants(Deadline::after(kKillingLimit), children_before_);
  report_.guard_lost = true;
  stage_ = Stage::kGone;
}

void Launch::stop(int signal, SignalOrigin origin) {
  stage_ = Stage::kStopping;
  killing_from_ = Clock::now() + options_.grace;
  guard_.stop(signal, origin);
}

/// Reports the signal as the cause only within the grace. Orders the guard to kill in any case,
/// since its grace begins a little later.
void Launch::kill_at_once(int signal) {
  const TimePoint now = Clock::now();
  if (now < killing_from_) {
    report_.cut_short = signal;
    killing_from_ = now;
  }
  guard_.kill();
}

}  // namespace

LaunchReport run(const LaunchOptions& options,
                 const std::vector<RankCommand>& ranks,
                 Target out,
                 Target err,
                 const RankFunction& function) {
  return Launch(options, ranks, out, err, function).run();
}

}  // namespace peal::launch
