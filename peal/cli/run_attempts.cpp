#include "peal/cli/run_attempts.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <variant>

#include <fmt/format.h>

#include "peal/cli/injection.h"
#include "peal/cli/say.h"
#include "peal/launch/agents/machine_variables.h"
#include "peal/launch/agents/run_on_hosts.h"
#include "peal/launch/attempts.h"
#include "peal/launch/command.h"
#include "peal/launch/cores.h"
#include "peal/launch/dump_place.h"
#include "peal/launch/flights.h"
#include "peal/launch/launcher.h"
#include "peal/launch/outputs.h"
#include "peal/launch/post_mortem.h"
#include "peal/launch/signals.h"
#include "peal/system/cpus.h"

namespace peal::cli {
namespace {

/// An agent ends its ranks after this silence of the launcher. The launcher may be stopped for a
/// while (SIGSTOP), or its machine may be very busy.
constexpr Timeout kAgentPatience{15'000};
/// How long the records of all hosts may take to arrive after a failure.
constexpr Timeout kRecordsLimit{10'000};

/// The result of an attempt.
struct Outcome {
  int exit_code = 0;
  enum class Next : unsigned char {
    kEnd,      // it ended well, by a signal, or by a mistake in the command
    kRestart,  // it failed
    kRetry,    // no rank was started, because hosts cannot be used
  } next = Next::kEnd;
  std::vector<std::pair<std::string, std::string>> lost{};  // hosts, and why
};

class AttemptLoop final {
 public:
  AttemptLoop(const RunRequest& request, const launch::Variables& inherited);
  int run();

 private:
  Outcome run_once(const launch::LaunchOptions& options);
  Outcome run_here(const launch::LaunchOptions& options);
  Outcome run_on_hosts(const launch::LaunchOptions& options);
  Outcome report(launch::LaunchReport& report,
                 const launch::Flights& flights,
                 const std::string& job,
                 const launch::LaunchOptions& options) const;
  launch::LaunchOptions options_of(const launch::BeginAttempt& attempt) const;
  launch::agents::AgentsOptions agents_options(const std::string& job) const;
  void bar(const Outcome& outcome);
  /// Returns the signal that ended the pause; 0: none.
  static int pause_until(TimePoint until);

  const RunRequest& request_;
  const launch::Variables& inherited_;
  const launch::Variables given_;
  launch::AttemptState state_;
  int attempt_ = 0;
  std::mt19937_64 random_{std::random_device{}()};
};

AttemptLoop::AttemptLoop(const RunRequest& request, const launch::Variables& inherited)
    : request_(request), inherited_(inherited), given_(given_variables(request, inherited)) {
  for (const launch::HostSlots& host : request.options.hosts) state_.hosts.push_back({host});
  state_.waiting_since = Clock::now();
}

int AttemptLoop::run() {
  Outcome last;
  while (true) {
    const auto decision = next_attempt(Clock::now(), state_, request_.attempts);
    if (const auto* pause = std::get_if<launch::Pause>(&decision)) {
      if (const int signal = pause_until(pause->until); signal != 0) return 128 + signal;
      continue;
    }
    if (const auto* end = std::get_if<launch::GiveUp>(&decision)) {
      say(fmt::format("peal: the job ends: {}\n", end->why));
      return last.exit_code == 0 ? 1 : last.exit_code;
    }
    last = run_once(options_of(std::get<launch::BeginAttempt>(decision)));
    bar(last);
    if (last.next == Outcome::Next::kRetry) continue;
    if (last.next == Outcome::Next::kEnd || !may_restart(state_, request_.attempts)) {
      return last.exit_code;
    }
    restart_after_failure(state_, Clock::now(), request_.attempts);
    ++attempt_;
    say(fmt::format("peal: restart {} of {}\n", state_.restarts, request_.attempts.restarts.most));
  }
}

launch::LaunchOptions AttemptLoop::options_of(const launch::BeginAttempt& attempt) const {
  launch::LaunchOptions options = request_.options;
  options.hosts = attempt.hosts;
  options.ranks = attempt.ranks;
  if (request_.attempts.restarts.most == 0) return options;
  options.variables.push_back({kAttemptVariable, fmt::format("{}", attempt_)});
  if (!options.log_directory.empty()) options.log_directory += fmt::format("/attempt-{}", attempt_);
  return options;
}

Outcome AttemptLoop::run_once(const launch::LaunchOptions& options) {
  launch::remove_former_dump(options.log_directory, options.node);
  return request_.engine ? run_on_hosts(options) : run_here(options);
}

Outcome AttemptLoop::run_here(const launch::LaunchOptions& options) {
  const auto path = inherited_.find("PATH");
  const launch::CommandLookup command = launch::find_command(
      options.command.front(), path == inherited_.end() ? "/usr/bin:/bin" : path->second);
  if (command.exit_code != 0) {
    say(fmt::format("peal: {}\n", command.problem));
    return {.exit_code = command.exit_code};
  }
  const launch::Flights flights(given_, options);
  if (!flights.problem().empty()) {
    say(fmt::format("peal: the ranks keep no records: {}\n", flights.problem()));
  }
  const launch::Target out = launch::target_of(STDOUT_FILENO);
  const auto job = inherited_.find("PEAL_JOB");
  launch::NewJobContext made =
      launch::make_job_context(options.node, job == inherited_.end() ? "" : job->second);
  made.job.terminal_width = launch::line_width(options, out);
  made.job.flights = flights.private_folder();
  const auto shares = launch::divide_cores(launch::usable_cores(), options.ranks, cpu_quota());
  const auto ranks = launch::plan_ranks(options, made.job, command.path, shares, inherited_);
  launch::LaunchReport result = launch::run(options, ranks, out, launch::target_of(STDERR_FILENO));
  return report(result, flights, made.job.id, options);
}

launch::agents::AgentsOptions AttemptLoop::agents_options(const std::string& job) const {
  using launch::agents::Part;
  return {.engine = *request_.engine,
          .begin = {.job = job,
                    .commands = {request_.options.command},
                    .environment = given_variables(request_, part_of(inherited_, Part::kJob)),
                    .directory = std::filesystem::current_path().string(),
                    .grace = request_.options.grace,
                    .silence = kAgentPatience},
          .version = PEAL_VERSION,
          .patience = request_.patience};
}

Outcome AttemptLoop::run_on_hosts(const launch::LaunchOptions& options) {
  const launch::Flights flights({});  // a place for the records of all hosts
  if (!flights.problem().empty()) {
    say(fmt::format("peal: no records are kept here: {}\n", flights.problem()));
  }
  const launch::Target out = launch::target_of(STDOUT_FILENO);
  launch::NewJobContext made = launch::make_job_context();
  made.job.terminal_width = launch::line_width(options, out);
  launch::agents::Agents agents(agents_options(made.job.id));
  if (const auto refusal = launch::agents::connect(agents, options)) {
    say("peal: " + refusal->text);
    return {.exit_code = refusal->exit_code,
            .next = attempt_ > 0 ? Outcome::Next::kRetry : Outcome::Next::kEnd,
            .lost = refusal->hosts};
  }
  launch::LaunchReport result = launch::agents::run_on_hosts(options,
                                                             made.job,
                                                             agents,
                                                             inherited_,
                                                             flights.folder(),
                                                             out,
                                                             launch::target_of(STDERR_FILENO));
  if (!launch::all_went_well(result)) {
    agents.collect_records(flights.folder(), options.ranks, kRecordsLimit);
  }
  return report(result, flights, made.job.id, options);
}

Outcome AttemptLoop::report(launch::LaunchReport& report,
                            const launch::Flights& flights,
                            const std::string& job,
                            const launch::LaunchOptions& options) const {
  ::signal(SIGXFSZ, SIG_IGN);  // the report may go to a file that has reached its limit
  report.post_mortem = launch::examine(report, flights.place(), job, options);
  say(tell_missed_faults(given_, report.ends));
  say(launch::describe(report));
  Outcome outcome{.exit_code = launch::exit_code(report)};
  const bool has_failed = outcome.exit_code != 0 && report.signal == 0 && !report.time_limit &&
                          !report.output_closed && !report.start_failure &&
                          handled_signal(report) == 0;
  if (has_failed) outcome.next = Outcome::Next::kRestart;
  for (const launch::ProcessEnd& end : report.ends) {
    if (!end.lost.empty()) outcome.lost.emplace_back(end.host, end.lost);
  }
  return outcome;
}

void AttemptLoop::bar(const Outcome& outcome) {
  std::set<std::string> barred;
  for (const auto& [host, why] : outcome.lost) {
    if (!barred.insert(host).second) continue;
    bar_host(state_,
             Clock::now(),
             host,
             why,
             request_.attempts,
             std::uniform_real_distribution(0.0, 1.0)(random_));
  }
}

int AttemptLoop::pause_until(TimePoint until) {
  launch::SignalReader signals;
  while (true) {
    const auto left = Deadline(until).left();
    if (left.count() == 0) return 0;
    pollfd entry{signals.fd(), POLLIN, 0};
    ::poll(&entry, 1, static_cast<int>(std::min<Timeout>(left, std::chrono::hours(1)).count()));
    while (const auto taken = signals.try_next()) {
      const bool ends = taken->signal == SIGINT || taken->signal == SIGTERM ||
                        taken->signal == SIGHUP || taken->signal == SIGQUIT;
      if (ends) return taken->signal;
    }
  }
}

}  // namespace

launch::Variables given_variables(const RunRequest& request, launch::Variables inherited) {
  for (const auto& [name, value] : request.options.variables) {
    inherited.insert_or_assign(name, value);
  }
  return inherited;
}

int run_attempts(const RunRequest& request, const launch::Variables& inherited) {
  return AttemptLoop(request, inherited).run();
}

}  // namespace peal::cli
