// Runs a command or a function as n ranks, from start to end. Called by `peal run` and
// `peal::spawn`.
#pragma once

#include "peal/launch/guard.h"
#include "peal/launch/launch_watch.h"
#include "peal/launch/options.h"
#include "peal/launch/rank_command.h"
#include "peal/launch/report.h"
#include "peal/launch/screen.h"
#include "peal/launch/signals.h"
#include "peal/launch/start_process.h"
#include "peal/observe/end_file.h"

namespace peal::launch {

/// Starts the processes of `ranks` (one or more, with consecutive numbers; see plan_ranks). Returns
/// when all of them and all their descendants have ended. With a `function`, the processes are
/// forks of this process and run the function instead of the programs.
///
/// After the first failure the other ranks have three seconds to fail by themselves and to print
/// why. Then they get SIGTERM, and SIGKILL after the grace.
///
/// `signals` are passed on. SIGINT, SIGTERM, SIGHUP and SIGQUIT also begin the grace. If the ranks
/// are being ended already, such a signal kills all of them at once. Within the three seconds it
/// ends them, and the report remains that of the failure.
///
/// The first rank reads this process's stdin, the others read nothing. No process is left behind,
/// even if this process is killed by SIGKILL. If the ranks keep records, the launcher stores beside
/// each record how the rank ended, as soon as the rank has ended. Threads: forks; call it before
/// the program has a second thread, one launch at a time. Errors: resource (descriptors, processes,
/// the log directory).
LaunchReport run(const LaunchOptions& options,
                 const std::vector<RankCommand>& ranks,
                 Target out,
                 Target err,
                 SignalReader& signals,
                 const RankFunction& function = {});

/// The same for ranks that a guard starts by order, on the hosts of their commands. The ends of the
/// ranks are also stored at `ends`, on this machine. `watch` may be null.
LaunchReport run(const LaunchOptions& options,
                 const std::vector<RankCommand>& ranks,
                 Target out,
                 Target err,
                 SignalReader& signals,
                 const GuardMaker& make_guard,
                 const observe::EndPlace& ends,
                 LaunchWatch* watch = nullptr);

}  // namespace peal::launch
