#include "peal/cli/run_job.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/cli/config_command.h"
#include "peal/cli/injection.h"
#include "peal/cli/say.h"
#include "peal/launch/agents/machine_variables.h"
#include "peal/launch/agents/run_on_hosts.h"
#include "peal/launch/command.h"
#include "peal/launch/cores.h"
#include "peal/launch/dump_place.h"
#include "peal/launch/elastic/round_records.h"
#include "peal/launch/elastic/run_elastic.h"
#include "peal/launch/flights.h"
#include "peal/launch/inherited.h"
#include "peal/launch/job_context.h"
#include "peal/launch/launcher.h"
#include "peal/launch/outputs.h"
#include "peal/launch/post_mortem.h"
#include "peal/launch/rank_command.h"
#include "peal/system/cpus.h"

namespace peal::cli {
namespace {

/// An agent ends its ranks if the launcher is silent for so long. The launcher may be stopped for a while
/// (SIGSTOP), or its machine may be very busy.
constexpr Timeout kAgentPatience{15'000};
/// How long the records of all hosts may take to arrive after a failure.
constexpr Timeout kRecordsLimit{10'000};

/// The environment of the ranks, as far as the user and the launcher's environment give it.
launch::Variables given_variables(const RunRequest& request, launch::Variables inherited) {
  for (const auto& [name, value] : request.options.variables) {
    inherited.insert_or_assign(name, value);
  }
  return inherited;
}

int run_elastic(const RunRequest& request,
                const std::string& program,
                const launch::RecordPlace& records,
                const launch::Variables& inherited) {
  const launch::JobContext job = launch::make_job_context().job;
  launch::ElasticReport report = launch::run_elastic(request.options,
                                                     *request.elastic,
                                                     job,
                                                     records,
                                                     program,
                                                     inherited,
                                                     launch::target_of(STDOUT_FILENO),
                                                     launch::target_of(STDERR_FILENO));
  ::signal(SIGXFSZ, SIG_IGN);  // as in `run`
  report.post_mortem = launch::examine(report, records, job.id, request.options);
  say(launch::describe(report));
  return launch::exit_code(report);
}

launch::agents::AgentsOptions agents_options(const RunRequest& request,
                                             const launch::JobContext& job,
                                             const launch::Variables& inherited) {
  using launch::agents::Part;
  return {.engine = *request.engine,
          .begin = {.job = job.id,
                    .command = request.options.command,
                    .environment = given_variables(request, part_of(inherited, Part::kJob)),
                    .directory = std::filesystem::current_path().string(),
                    .grace = request.options.grace,
                    .silence = kAgentPatience},
          .version = PEAL_VERSION,
          .patience = request.patience};
}

int run_on_hosts(const RunRequest& request, const launch::Variables& inherited) {
  const launch::Flights flights({});  // a place for the records of all hosts
  const launch::Target out = launch::target_of(STDOUT_FILENO);
  launch::NewJobContext made = launch::make_job_context();
  made.job.terminal_width = launch::line_width(request.options, out);
  launch::agents::Agents agents(agents_options(request, made.job, inherited));
  if (const auto refusal = launch::agents::connect(agents, request.options)) {
    say("peal: " + refusal->text);
    return refusal->exit_code;
  }
  launch::LaunchReport report = launch::agents::run_on_hosts(
      request.options, made.job, agents, inherited, out, launch::target_of(STDERR_FILENO));
  ::signal(SIGXFSZ, SIG_IGN);  // as in `run`
  if (!launch::all_went_well(report)) {
    agents.collect_records(flights.folder(), kRecordsLimit);
    report.post_mortem = launch::examine(report, flights.place(), made.job.id, request.options);
  }
  say(launch::describe(report));
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
  if (request.engine) return run_on_hosts(request, inherited);
  const auto path = inherited.find("PATH");
  const launch::CommandLookup command = launch::find_command(
      options.command.front(), path == inherited.end() ? "/usr/bin:/bin" : path->second);
  if (command.exit_code != 0) {
    say(fmt::format("peal: {}\n", command.problem));
    return command.exit_code;
  }
  const launch::Flights flights(given, options);
  if (!flights.problem().empty()) {
    say(fmt::format("peal: the ranks keep no records: {}\n", flights.problem()));
  }
  launch::remove_former_dump(options.log_directory, options.node);
  if (request.elastic) return run_elastic(request, command.path, flights.place(), inherited);
  const launch::Target out = launch::target_of(STDOUT_FILENO);
  const auto job = inherited.find("PEAL_JOB");
  launch::NewJobContext made =
      launch::make_job_context(options.node, job == inherited.end() ? "" : job->second);
  made.job.terminal_width = launch::line_width(options, out);
  made.job.flights = flights.private_folder();
  const auto shares = launch::divide_cores(launch::usable_cores(), options.ranks, cpu_quota());
  const auto ranks = launch::plan_ranks(options, made.job, command.path, shares, inherited);
  launch::LaunchReport report = launch::run(options, ranks, out, launch::target_of(STDERR_FILENO));
  ::signal(SIGXFSZ, SIG_IGN);  // the report may go to a file that has reached its limit
  report.post_mortem = launch::examine(report, flights.place(), made.job.id, options);
  say(tell_missed_faults(given, report.ends));
  say(launch::describe(report));
  return launch::exit_code(report);
}

}  // namespace peal::cli
