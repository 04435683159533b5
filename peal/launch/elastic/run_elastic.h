// Runs a command as an elastic job, from start to end. Called by `peal run`.
#pragma once

#include "peal/launch/elastic/elastic_options.h"
#include "peal/launch/elastic/elastic_report.h"
#include "peal/launch/elastic/host_guard.h"
#include "peal/launch/flights.h"
#include "peal/launch/job_context.h"
#include "peal/launch/options.h"
#include "peal/launch/rank_command.h"
#include "peal/launch/screen.h"
#include "peal/launch/signals.h"

namespace peal::launch {

/// Runs the discovery script every second, connects with hosts, and starts a worker on each free
/// slot. Begins a new round whenever workers come or go, by the rules of elastic/decide.h. Returns
/// when the job has ended and no process of it is left.
///
/// `options.ranks` and `options.hosts` are not used. `records`: round 2 keeps its records in the
/// folder round-2 there. `make_guard` is called once. `inherited`: the environment of the launcher.
/// The lines of a worker begin with its host and slot, because its rank changes:
/// "localhost[0] ". Logs: <log_directory>/localhost-0.out and .err, or localhost-0/stdout and
/// stderr; the n-th worker on a slot: localhost-0.<n>.out. Losses and new rounds are reported on
/// `err` while the job runs.
///
/// `signals` are passed on. SIGINT, SIGTERM, SIGHUP and SIGQUIT end the job: workers that remain
/// after the grace are killed; a second such signal kills them at once. The workers read nothing
/// from stdin. No process is left behind, even if this process is killed by SIGKILL.
/// Threads: forks first, then starts two threads; call it before the program has a second thread.
/// Errors: usage (the first run of the discovery script fails, or prints no list of hosts),
///   resource.
ElasticReport run_elastic(const LaunchOptions& options,
                          const ElasticOptions& elastic,
                          const JobContext& job,
                          const RecordPlace& records,
                          const HostGuardMaker& make_guard,
                          const Variables& inherited,
                          Target out,
                          Target err,
                          SignalReader& signals);

}  // namespace peal::launch
