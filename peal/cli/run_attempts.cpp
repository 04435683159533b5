#include "peal/cli/run_attempts.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/interrupt.h"
#include "peal/cli/agents_options.h"
#include "peal/cli/injection.h"
#include "peal/launch/agents/run_on_hosts.h"
#include "peal/launch/command.h"
#include "peal/launch/containers/container_command.h"
#include "peal/launch/containers/engine_client.h"
#include "peal/launch/cores.h"
#include "peal/launch/dump_place.h"
#include "peal/launch/flights.h"
#include "peal/launch/launcher.h"
#include "peal/launch/outputs.h"
#include "peal/launch/post_mortem.h"
#include "peal/system/cpus.h"

namespace peal::cli {
namespace {

class RunJob final : public TerminalJob {
 public:
  RunJob(const RunRequest& request,
         const launch::Variables& inherited,
         launch::SignalReader& signals);
  launch::AttemptEnd run(const launch::BeginAttempt& attempt, int number) override;

 private:
  launch::CommandLookup look_up(const Interrupt& interrupt) const;
  std::vector<launch::RankCommand> plan(const launch::LaunchOptions& options,
                                        const launch::JobContext& job,
                                        const std::string& program) const;
  launch::AttemptEnd run_here(const launch::LaunchOptions& options);
  launch::AttemptEnd run_on_hosts(const launch::LaunchOptions& options, int number);
  launch::AttemptEnd report(launch::LaunchReport& report,
                            const launch::Flights& flights,
                            const std::string& job,
                            const launch::LaunchOptions& options) const;
  launch::LaunchOptions options_of(const launch::BeginAttempt& attempt, int number) const;

  const RunRequest& request_;
  const launch::Variables& inherited_;
  const launch::Variables given_;
};

RunJob::RunJob(const RunRequest& request,
               const launch::Variables& inherited,
               launch::SignalReader& signals)
    : TerminalJob(signals),
      request_(request),
      inherited_(inherited),
      given_(given_variables(request, inherited)) {}

launch::AttemptEnd RunJob::run(const launch::BeginAttempt& attempt, int number) {
  const launch::LaunchOptions options = options_of(attempt, number);
  launch::remove_former_dump(options.log_directory, options.node);
  return request_.engine ? run_on_hosts(options, number) : run_here(options);
}

launch::LaunchOptions RunJob::options_of(const launch::BeginAttempt& attempt, int number) const {
  launch::LaunchOptions options = request_.options;
  options.hosts = attempt.hosts;
  options.ranks = attempt.ranks;
  if (request_.attempts.restarts.most == 0) return options;
  options.variables.push_back({launch::kAttemptVariable, fmt::format("{}", number)});
  if (!options.log_directory.empty()) options.log_directory += fmt::format("/attempt-{}", number);
  return options;
}

/// The program that runs here: the command, or the engine of its container. Throws Interrupted.
launch::CommandLookup RunJob::look_up(const Interrupt& interrupt) const {
  if (request_.container) {
    const auto found = launch::containers::find_engine(
        request_.container_engine, {request_.container->image}, inherited_, interrupt);
    if (!found.notice.empty()) say(fmt::format("peal: {}\n", found.notice));
    constexpr int kCannotRun = 126;  // as in a shell
    return {.path = found.engine,
            .exit_code = found.problem.empty() ? 0 : kCannotRun,
            .problem = found.problem};
  }
  return launch::find_command(request_.options.command.front(), given_);
}

std::vector<launch::RankCommand> RunJob::plan(const launch::LaunchOptions& options,
                                              const launch::JobContext& job,
                                              const std::string& program) const {
  const auto shares = launch::divide_cores(launch::usable_cores(), options.ranks, cpu_quota());
  if (!request_.container) return launch::plan_ranks(options, job, program, shares, inherited_);
  auto ranks = launch::plan_ranks(options,
                                  job,
                                  options.command.front(),
                                  shares,
                                  launch::containers::inherited_in_container(inherited_));
  for (launch::RankCommand& rank : ranks) {
    rank = launch::containers::in_container(rank, *request_.container, program, inherited_);
  }
  return ranks;
}

launch::AttemptEnd RunJob::run_here(const launch::LaunchOptions& options) {
  launch::CommandLookup command;
  int signal = 0;
  try {
    command = look_up([&] {  // an image may be pulled for minutes
      signal = signals().take_end();
      if (signal != 0) throw Error(ErrorKind::kAborted, "a signal ends the launch");
    });
  } catch (const Interrupted&) {
    return {.signal = signal};
  }
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
  const auto ranks = plan(options, made.job, command.path);
  launch::LaunchReport result =
      launch::run(options, ranks, out, launch::target_of(STDERR_FILENO), signals());
  return report(result, flights, made.job.id, options);
}

launch::AttemptEnd RunJob::run_on_hosts(const launch::LaunchOptions& options, int number) {
  const launch::Flights flights({});  // a place for the records of all hosts
  if (!flights.problem().empty()) {
    say(fmt::format("peal: no records are kept here: {}\n", flights.problem()));
  }
  const launch::Target out = launch::target_of(STDOUT_FILENO);
  launch::NewJobContext made = launch::make_job_context();
  made.job.terminal_width = launch::line_width(options, out);
  launch::agents::Agents agents(agents_options(request_, made.job.id, inherited_), signals());
  if (const int signal = launch::agents::connect(agents, options, signals()); signal != 0) {
    return {.signal = signal};
  }
  if (const auto refusal = launch::agents::refusal_of(agents)) {
    say("peal: " + refusal->text);
    return launch::agents::end_of(*refusal, number);
  }
  for (int i = 0; i < agents.count(); ++i) {
    const std::string& notice = agents.host(i).facts().notice;
    if (!notice.empty()) say(fmt::format("peal: {}: {}\n", agents.host(i).name(), notice));
  }
  launch::LaunchReport result = launch::agents::run_on_hosts(options,
                                                             made.job,
                                                             agents,
                                                             inherited_,
                                                             request_.container,
                                                             flights.folder(),
                                                             out,
                                                             launch::target_of(STDERR_FILENO),
                                                             signals());
  if (!launch::all_went_well(result)) {
    agents.collect_records(flights.folder(), options.ranks, launch::agents::kRecordsLimit);
  }
  launch::AttemptEnd end = report(result, flights, made.job.id, options);
  end.may_be_preempted |= launch::agents::may_be_preempted(agents);
  return end;
}

launch::AttemptEnd RunJob::report(launch::LaunchReport& report,
                                  const launch::Flights& flights,
                                  const std::string& job,
                                  const launch::LaunchOptions& options) const {
  report.post_mortem = launch::examine(report, flights.place(), job, options);
  say(tell_faults(given_, report.ends));
  say(launch::describe(report));
  return launch::end_of(report);
}

}  // namespace

launch::Variables given_variables(const RunRequest& request, launch::Variables inherited) {
  for (const auto& [name, value] : request.options.variables) {
    inherited.insert_or_assign(name, value);
  }
  return inherited;
}

int run_attempts(const RunRequest& request,
                 const launch::Variables& inherited,
                 launch::SignalReader& signals) {
  RunJob job(request, inherited, signals);
  launch::AttemptState state{.hosts = {}, .waiting_since = Clock::now()};
  for (const launch::HostSlots& host : request.options.hosts) state.hosts.push_back({host});
  return launch::run_attempts(std::move(state), request.attempts, launch::slots_of, job, signals);
}

}  // namespace peal::cli
