#include "peal/launch/attempt_loop.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <random>
#include <set>
#include <variant>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/launch_watch.h"
#include "peal/system/process_state.h"

namespace peal::launch {
namespace {

/// Why a pause has ended early. Both are 0 if the pause has lasted its full time.
struct Stop {
  int signal = 0;
  int exit_code = 0;
};

Stop pause_until(TimePoint until, AttemptedJob& job, SignalReader& signals) {
  while (true) {
    if (const int signal = signals.take_end(); signal != 0) {
      return {.signal = signal, .exit_code = kSignalBase + signal};
    }
    if (const int code = job.look(); code != 0) return {.exit_code = code};
    const auto left = Deadline(until).left();
    if (left.count() == 0) return {};
    pollfd entry{signals.fd(), POLLIN, 0};
    ::poll(&entry, 1, static_cast<int>(std::min<Timeout>(left, kLookEvery).count()));
  }
}

void bar(const AttemptEnd& end,
         const AttemptRules& rules,
         std::mt19937_64& random,
         AttemptState& state) {
  std::set<std::string> barred;
  for (const auto& [host, why] : end.lost) {
    if (!barred.insert(host).second) continue;
    const double chance = std::uniform_real_distribution(0.0, 1.0)(random);
    bar_host(state, Clock::now(), host, why, rules, chance);
  }
}

bool is_preempted(AttemptedJob& job) {
  try {
    return job.is_preempted();
  } catch (const Error& error) {
    job.tell(fmt::format("{}; so the job counts as not preempted", error.message()));
    return false;
  }
}

/// Waits until Slurm ends the preempted job. Returns the exit code.
int await_preemption(AttemptedJob& job, const AttemptRules& rules, SignalReader& signals) {
  job.preempted(
      "Slurm preempts the job; no rank runs, and the launcher waits until Slurm ends the job");
  do {
    const TimePoint next = Clock::now() + rules.ask_slurm_every;
    if (const Stop stop = pause_until(next, job, signals); stop.exit_code != 0) {
      return stop.exit_code;
    }
  } while (is_preempted(job));
  return kSignalBase + SIGTERM;
}

/// The end by a signal while no rank runs. Returns the exit code.
int end_by(int signal, AttemptedJob& job, const AttemptRules& rules, SignalReader& signals) {
  if (signal == SIGTERM && is_preempted(job)) return await_preemption(job, rules, signals);
  job.interrupted(
      signal,
      fmt::format("the job ends: the launcher got {} while no rank ran", signal_name(signal)));
  return kSignalBase + signal;
}

}  // namespace

AttemptEnd end_of(const LaunchReport& report) {
  AttemptEnd end{.exit_code = exit_code(report)};
  const bool was_ended = report.signal != 0 || report.late_signal != 0 || report.time_limit ||
                         report.was_cancelled || report.output_closed ||
                         handled_signal(report) != 0;
  const bool cannot_start =
      report.start_failure || std::ranges::any_of(report.ends, [](const ProcessEnd& process) {
        return process.container_start == ContainerStart::kFailed;
      });
  if (end.exit_code != 0 && !was_ended && !cannot_start) end.next = AfterAttempt::kRestart;
  end.may_be_preempted =
      report.signal == SIGTERM || (report.late_signal == SIGTERM && end.exit_code != 0);
  for (const ProcessEnd& process : report.ends) {
    if (!process.lost.empty()) end.lost.emplace_back(process.host, process.lost);
  }
  return end;
}

int run_attempts(AttemptState state,
                 const AttemptRules& rules,
                 const RoomFor& room,
                 AttemptedJob& job,
                 SignalReader& signals) {
  std::mt19937_64 random{std::random_device{}()};
  int exit_code = 0;
  int number = 0;
  while (true) {
    if (const int signal = signals.take_end(); signal != 0) {
      return end_by(signal, job, rules, signals);
    }
    const auto decision = next_attempt(Clock::now(), state, rules, room);
    if (const auto* pause = std::get_if<Pause>(&decision)) {
      if (!pause->why.empty()) job.wait(pause->why);
      const Stop stop = pause_until(pause->until, job, signals);
      if (stop.signal != 0) return end_by(stop.signal, job, rules, signals);
      if (stop.exit_code != 0) return stop.exit_code;
      continue;
    }
    if (const auto* end = std::get_if<GiveUp>(&decision)) {
      job.give_up(fmt::format("the job ends: {}", end->why));
      return exit_code == 0 ? 1 : exit_code;
    }
    const AttemptEnd end = job.run(std::get<BeginAttempt>(decision), number);
    if (end.signal != 0) return end_by(end.signal, job, rules, signals);
    if (end.next != AfterAttempt::kRetry || exit_code == 0) exit_code = end.exit_code;
    if (end.may_be_preempted && is_preempted(job)) return await_preemption(job, rules, signals);
    bar(end, rules, random, state);
    if (end.next == AfterAttempt::kRetry) continue;
    if (end.next == AfterAttempt::kEnd || !may_restart(state, rules)) return exit_code;
    restart_after_failure(state, Clock::now(), rules);
    ++number;
    job.restart(fmt::format("restart {} of {}", state.restarts, rules.restarts.most));
  }
}

}  // namespace peal::launch
