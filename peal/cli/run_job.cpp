#include "peal/cli/run_job.h"

#include <signal.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "peal/cli/agents_options.h"
#include "peal/cli/config_command.h"
#include "peal/cli/injection.h"
#include "peal/cli/run_attempts.h"
#include "peal/cli/say.h"
#include "peal/launch/agents/elastic_guard.h"
#include "peal/launch/agents/run_on_hosts.h"
#include "peal/launch/attempt_loop.h"
#include "peal/launch/dump_place.h"
#include "peal/launch/elastic/round_records.h"
#include "peal/launch/elastic/run_elastic.h"
#include "peal/launch/flights.h"
#include "peal/launch/inherited.h"
#include "peal/launch/job_context.h"
#include "peal/launch/post_mortem.h"
#include "peal/observe/flight_folder.h"

namespace peal::cli {
namespace {

int run_elastic(const RunRequest& request, const launch::Variables& inherited) {
  using launch::agents::LauncherFacts;
  const launch::LaunchOptions& options = request.options;
  const launch::Flights flights(given_variables(request, inherited), options);
  if (!flights.problem().empty()) {
    say(fmt::format("peal: the ranks keep no records: {}\n", flights.problem()));
  }
  launch::remove_former_dump(options.log_directory, options.node);
  const launch::JobContext job = launch::make_job_context().job;
  std::optional<launch::agents::Agents> agents(std::in_place,
                                               agents_options(request, job.id, inherited));
  const bool is_slurm = request.engine && request.engine->engine == launch::agents::Engine::kSlurm;
  const LauncherFacts launcher{
      .command = options.command,
      .environment = given_variables(request, inherited),
      .names = is_slurm ? LauncherFacts::Names::kOfNodes : LauncherFacts::Names::kOfHosts};
  launch::ElasticReport report = launch::run_elastic(
      options,
      *request.elastic,
      job,
      flights.place(),
      [&](launch::GuardDuty duty) {
        return std::make_unique<launch::agents::ElasticGuard>(*agents, launcher, std::move(duty));
      },
      inherited,
      launch::target_of(STDOUT_FILENO),
      launch::target_of(STDERR_FILENO));
  ::signal(SIGXFSZ, SIG_IGN);  // the report may go to a file that has reached its limit
  if (!report.why_badly.empty() && !report.rounds.empty() && !flights.folder().empty()) {
    const launch::ElasticRound& last = report.rounds.back();
    agents->collect_round(observe::round_folder_in(flights.folder(), last.number),
                          last.number,
                          last.ranks,
                          launch::agents::kRecordsLimit);
  }
  report.post_mortem = launch::examine(report, flights.place(), job.id, options);
  say(launch::describe(report));
  const bool is_preempted = launch::agents::is_preempted(*agents, report.signal);
  agents.reset();  // nothing serves the agents while this process waits
  if (is_preempted) {
    say(fmt::format("peal: {}\n", launch::kPreempted));
    return launch::await_preemption([] { return 0; });
  }
  return launch::exit_code(report);
}

}  // namespace

int run(const RunRequest& request) {
  const launch::LaunchOptions& options = request.options;
  const launch::Variables inherited = launch::without_those_of_a_rank(launch::process_variables());
  for (const std::string& notice : request.notices) say(fmt::format("peal: {}\n", notice));
  const launch::Variables given = given_variables(request, inherited);
  say(warn_of_unknown(given));
  if (!request.elastic) say(announce_faults(given, launch::world_size_of(options)));
  if (!request.elastic) return run_attempts(request, inherited);
  return run_elastic(request, inherited);
}

}  // namespace peal::cli
