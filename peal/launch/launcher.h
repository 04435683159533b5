// Runs a command as n ranks on this machine, from start to end. Called by `peal run`.
#pragma once

#include "peal/launch/options.h"
#include "peal/launch/rank_process.h"
#include "peal/launch/report.h"
#include "peal/launch/screen.h"

namespace peal::launch {

/// Starts the processes of `ranks` (one or more, in rank order; see plan_ranks) and returns when
/// all of them and all that they started have ended. The first that fails ends the others: they
/// have three seconds to fail by themselves and to say why, then they get SIGTERM, and SIGKILL
/// after the grace. Signals are passed on; those that ask to end (SIGINT, SIGTERM, SIGHUP, SIGQUIT)
/// begin the grace; one that comes when the ranks have been told to end, for whatever reason, ends
/// everybody at once. One that comes in the three seconds ends them, and the report stays that of
/// the failure. Rank 0 reads this process's stdin, the others nothing. Nothing is left behind, also
/// when this process is killed by SIGKILL. How a rank has ended is left beside its record, if the
/// ranks keep any, as soon as it has. Threads: forks; call it before the program has a second
/// thread, one launch at a time. Signal handling is changed while it runs. Errors: resource
/// (descriptors, processes, the log directory).
LaunchReport run(const LaunchOptions& options,
                 const std::vector<RankProcess>& ranks,
                 Target out,
                 Target err);

}  // namespace peal::launch
