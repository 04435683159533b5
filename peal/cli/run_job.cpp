#include "peal/cli/run_job.h"

#include <signal.h>
#include <unistd.h>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/cli/config_command.h"
#include "peal/cli/injection.h"
#include "peal/cli/run_attempts.h"
#include "peal/cli/say.h"
#include "peal/launch/command.h"
#include "peal/launch/dump_place.h"
#include "peal/launch/elastic/round_records.h"
#include "peal/launch/elastic/run_elastic.h"
#include "peal/launch/flights.h"
#include "peal/launch/inherited.h"
#include "peal/launch/job_context.h"
#include "peal/launch/post_mortem.h"

namespace peal::cli {
namespace {

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

}  // namespace

int run(const RunRequest& request) {
  const launch::LaunchOptions& options = request.options;
  const launch::Variables inherited = launch::without_those_of_a_rank(launch::process_variables());
  for (const std::string& notice : request.notices) say(fmt::format("peal: {}\n", notice));
  const launch::Variables given = given_variables(request, inherited);
  say(warn_of_unknown(given));
  if (!request.elastic) say(announce_faults(given, launch::world_size_of(options)));
  if (!request.elastic) return run_attempts(request, inherited);
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
  return run_elastic(request, command.path, flights.place(), inherited);
}

}  // namespace peal::cli
