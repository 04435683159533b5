#include "peal/launch/supervisor.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "peal/launch/guard_process.h"

namespace peal::launch {
namespace {

/// After the loss of the guard: how long to try to kill its processes, before the report says that
/// they hang.
constexpr Timeout kKillingLimit{5000};

std::set<pid_t> own_descendants() {
  const std::vector<pid_t> found = descendants_of(::getpid());
  return {found.begin(), found.end()};
}

GuardMaker maker_of(GuardDuty duty, const SignalReader& signals) {
  duty.mask = signals.previous_mask();
  return
      [duty = std::move(duty)]() mutable { return std::make_unique<LocalGuard>(std::move(duty)); };
}

}  // namespace

Supervisor::Supervisor(SignalReader& signals, Timeout grace, const GuardMaker& make_guard)
    : grace_(grace), children_before_(own_descendants()), signals_(signals), guard_(make_guard()) {}

Supervisor::Supervisor(SignalReader& signals, GuardDuty duty)
    : Supervisor(signals, duty.grace, maker_of(duty, signals)) {}

void Supervisor::add_to(std::vector<pollfd>& entries) const {
  entries.push_back({signals_.fd(), POLLIN, 0});
  entries.push_back({stage_ >= Stage::kGone ? -1 : guard_->events(), POLLIN, 0});
}

void Supervisor::handle(std::span<const pollfd> entries,
                        const std::function<void(const GuardEvent&)>& handler) {
  if (entries[0].revents != 0) handle_signals();
  if (entries[1].revents != 0) {
    while (const auto event = guard_->try_next()) {
      if (event->kind == GuardEvent::Kind::kAfterEnd) {
        after_ends_.insert(event->pid);
      } else if (event->kind == GuardEvent::Kind::kGone) {
        intervention_.survivors = event->value;
        stage_ = Stage::kGone;
      } else {
        handler(*event);
      }
    }
    if (guard_->has_ended() && stage_ < Stage::kGone) guard_is_lost();
  }
  if (stage_ == Stage::kFailing && Clock::now() >= stopping_from_) {
    stop(SIGTERM, SignalOrigin::kProcess);
  }
}

void Supervisor::handle_signals() {
  while (const auto taken = signals_.try_next()) {
    switch (taken->signal) {
      case SIGUSR1:
      case SIGUSR2:
      case SIGCONT:
        guard_->pass_on(taken->signal, taken->origin);
        break;
      case SIGTSTP:
        guard_->pass_on(SIGTSTP, taken->origin);
        ::raise(SIGSTOP);  // returns when the shell resumes the job, which also sends SIGCONT
        break;
      default:
        end_by_signal(*taken);
    }
  }
}

void Supervisor::end_by_signal(SignalReader::Taken taken) {
  const bool is_of_terminal = taken.origin == SignalOrigin::kTerminal;
  const StopSignal request = {taken.signal, is_of_terminal, Clock::now()};
  if (last_request_ && is_repeated(*last_request_, request)) return;
  last_request_ = request;
  if (stage_ != Stage::kRunning && intervention_.signal == 0 && intervention_.late_signal == 0) {
    intervention_.late_signal = taken.signal;
  }
  switch (stage_) {
    case Stage::kRunning:
      intervention_.signal = taken.signal;
      return ask_to_stop(taken.signal, taken.origin);
    case Stage::kFailing:
      return stop(taken.signal, taken.origin);
    case Stage::kStopping:
      return kill_at_once(taken.signal);
    case Stage::kGone:
    case Stage::kAbandoned:
      stage_ = Stage::kAbandoned;
  }
}

/// Records that the signal cut the grace short, unless the grace is over. Orders the guard to kill
/// in any case, since the guard's grace begins a little later.
void Supervisor::kill_at_once(int signal) {
  const TimePoint now = Clock::now();
  if (!is_killing(now)) {
    intervention_.cut_short = signal;
    killing_from_ = now;
  }
  guard_->kill();
}

/// The kernel has killed the processes, and their descendants are children of the launcher now.
void Supervisor::guard_is_lost() {
  std::set<pid_t> spared = children_before_;
  spared.insert(after_ends_.begin(), after_ends_.end());
  intervention_.survivors = kill_descendants(Deadline::after(kKillingLimit), spared);
  await_after_ends();
  intervention_.guard_lost = true;
  stage_ = Stage::kGone;
}

/// These commands remove containers. The launcher must not hang if a command hangs.
void Supervisor::await_after_ends() const {
  const Deadline deadline = Deadline::after(kAfterEndLimit);
  for (const pid_t pid : after_ends_) {
    while (::waitpid(pid, nullptr, WNOHANG) == 0 && !deadline.passed()) ::poll(nullptr, 0, 20);
  }
}

void Supervisor::fail() {
  if (stage_ != Stage::kRunning) return;
  stage_ = Stage::kFailing;
  stopping_from_ = Clock::now() + kOwnEnds;
}

void Supervisor::stop(int signal, SignalOrigin origin) {
  note_stop();
  guard_->stop(signal, origin);
}

void Supervisor::ask_to_stop(int signal, SignalOrigin origin) {
  note_stop();
  guard_->ask_to_stop(signal, origin);
}

/// A request to end may come after the guard has ended: the stages only go forward.
void Supervisor::note_stop() {
  if (stage_ > Stage::kStopping) return;
  stage_ = Stage::kStopping;
  killing_from_ = std::min(killing_from_, Clock::now() + grace_);
}

EndedBy Supervisor::ender_of(int status, TimePoint now) const {
  if (stage_ != Stage::kStopping) return EndedBy::kItself;
  const bool by_sigkill = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  return by_sigkill && is_killing(now) ? EndedBy::kKill : EndedBy::kRequest;
}

void Supervisor::give_up_output() {
  if (stage_ == Stage::kGone && intervention_.signal != 0) stage_ = Stage::kAbandoned;
}

}  // namespace peal::launch
