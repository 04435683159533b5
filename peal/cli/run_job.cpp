#include "peal/cli/run_job.h"

#include <signal.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "peal/cli/agents_options.h"
#include "peal/cli/config_command.h"
#include "peal/cli/injection.h"
#include "peal/cli/run_attempts.h"
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

/// An elastic job has one attempt, because the driver restarts the workers itself.
class ElasticJob final : public TerminalJob {
 public:
  ElasticJob(const RunRequest& request,
             const launch::Variables& inherited,
             launch::SignalReader& signals)
      : TerminalJob(signals), request_(request), inherited_(inherited) {}
  launch::AttemptEnd run(const launch::BeginAttempt& attempt, int number) override;

 private:
  const RunRequest& request_;
  const launch::Variables& inherited_;
};

launch::AttemptEnd ElasticJob::run(const launch::BeginAttempt& /*attempt*/, int /*number*/) {
  using launch::agents::LauncherFacts;
  const launch::LaunchOptions& options = request_.options;
  const launch::Variables given = given_variables(request_, inherited_);
  const launch::Flights flights(given, options);
  if (!flights.problem().empty()) {
    say(fmt::format("peal: the ranks keep no records: {}\n", flights.problem()));
  }
  launch::remove_former_dump(options.log_directory, options.node);
  const launch::JobContext job = launch::make_job_context().job;
  launch::agents::Agents agents(agents_options(request_, job.id, inherited_), signals());
  const bool is_slurm =
      request_.engine && request_.engine->engine == launch::agents::Engine::kSlurm;
  const LauncherFacts launcher{
      .command = options.command,
      .environment = given,
      .names = is_slurm ? LauncherFacts::Names::kOfNodes : LauncherFacts::Names::kOfHosts};
  launch::ElasticReport report = launch::run_elastic(
      options,
      *request_.elastic,
      job,
      flights.place(),
      [&](launch::GuardDuty duty) {
        return std::make_unique<launch::agents::ElasticGuard>(agents, launcher, std::move(duty));
      },
      inherited_,
      launch::target_of(STDOUT_FILENO),
      launch::target_of(STDERR_FILENO),
      signals());
  if (!report.why_badly.empty() && !report.rounds.empty() && !flights.folder().empty()) {
    const launch::ElasticRound& last = report.rounds.back();
    agents.collect_round(observe::round_folder_in(flights.folder(), last.number),
                         last.number,
                         last.ranks,
                         launch::agents::kRecordsLimit);
  }
  report.post_mortem = launch::examine(report, flights.place(), job.id, options);
  say(launch::describe(report));
  return {.exit_code = launch::exit_code(report),
          .may_be_preempted = report.signal == SIGTERM || launch::agents::may_be_preempted(agents)};
}

/// The destructor ignores SIGXFSZ. Then a later write beyond the limit of file sizes fails, and
/// does not kill this process. The constructor does not do this, because ranks would inherit it.
struct SafeExit {
  SafeExit() = default;
  ~SafeExit() { ::signal(SIGXFSZ, SIG_IGN); }
  SafeExit(const SafeExit&) = delete;
  SafeExit& operator=(const SafeExit&) = delete;
};

}  // namespace

int run(const RunRequest& request) {
  const launch::LaunchOptions& options = request.options;
  const launch::Variables inherited = launch::without_those_of_a_rank(launch::process_variables());
  say_notices(request.notices);
  const launch::Variables given = given_variables(request, inherited);
  say(warn_of_unknown(given));
  if (!request.elastic) say(announce_faults(given, launch::world_size_of(options)));
  const SafeExit safe_exit;  // destroyed after `signals`, which blocks SIGXFSZ
  launch::SignalReader signals;
  if (!request.elastic) return run_attempts(request, inherited, signals);
  ElasticJob job(request, inherited, signals);
  return launch::run_attempts({}, {}, launch::slots_of, job, signals);
}

}  // namespace peal::cli
