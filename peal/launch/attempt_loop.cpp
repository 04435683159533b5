#include "peal/launch/attempt_loop.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <variant>

#include <fmt/format.h>

#include "peal/launch/launch_watch.h"
#include "peal/launch/signals.h"

namespace peal::launch {
namespace {

/// Returns the exit code of a job that must end; 0: the pause is over.
int pause_until(TimePoint until, const std::function<int()>& look) {
  SignalReader signals;
  while (true) {
    if (const int code = look(); code != 0) return code;
    const auto left = Deadline(until).left();
    if (left.count() == 0) return 0;
    pollfd entry{signals.fd(), POLLIN, 0};
    ::poll(&entry, 1, static_cast<int>(std::min<Timeout>(left, kLookEvery).count()));
    while (const auto taken = signals.try_next()) {
      if (ends_a_launch(taken->signal)) return kSignalBase + taken->signal;
    }
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

/// Waits until Slurm ends the preempted job. Returns the exit code.
int await_preemption(AttemptedJob& job, const AttemptRules& rules) {
  job.preempted(
      "Slurm preempts the job; no rank runs, and the launcher waits until Slurm ends the job");
  do {
    const TimePoint next = Clock::now() + rules.ask_slurm_every;
    if (const int code = pause_until(next, [&] { return job.look(); }); code != 0) return code;
  } while (job.is_preempted());
  return kSignalBase + SIGTERM;
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
                 AttemptedJob& job) {
  std::mt19937_64 random{std::random_device{}()};
  const auto look = [&] { return job.look(); };
  int exit_code = 0;
  int number = 0;
  while (true) {
    const auto decision = next_attempt(Clock::now(), state, rules, room);
    if (const auto* pause = std::get_if<Pause>(&decision)) {
      if (!pause->why.empty()) job.wait(pause->why);
      const int code = pause_until(pause->until, look);
      if (code == kSignalBase + SIGTERM && job.is_preempted()) return await_preemption(job, rules);
      if (code != 0) return code;
      continue;
    }
    if (const auto* end = std::get_if<GiveUp>(&decision)) {
      job.tell(fmt::format("the job ends: {}", end->why));
      return exit_code == 0 ? 1 : exit_code;
    }
    const AttemptEnd end = job.run(std::get<BeginAttempt>(decision), number);
    if (end.next != AfterAttempt::kRetry || exit_code == 0) exit_code = end.exit_code;
    if (end.may_be_preempted && job.is_preempted()) return await_preemption(job, rules);
    bar(end, rules, random, state);
    if (end.next == AfterAttempt::kRetry) continue;
    if (end.next == AfterAttempt::kEnd || !may_restart(state, rules)) return exit_code;
    restart_after_failure(state, Clock::now(), rules);
    ++number;
    job.restart(fmt::format("restart {} of {}", state.restarts, rules.restarts.most));
  }
}

}  // namespace peal::launch
