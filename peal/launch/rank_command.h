// The command of each rank as a value: what spawn.h starts. Pure functions make it from the
// options, the job and the cores. Called by the launcher.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "peal/base/units.h"
#include "peal/launch/cores.h"
#include "peal/launch/job_context.h"
#include "peal/launch/options.h"

namespace peal::launch {

using Variables = std::map<std::string, std::string>;

struct RankCommand {
  Rank rank = 0;
  std::string program;                 // a path
  std::vector<std::string> arguments;  // the first is the program as the user named it
  Variables environment;               // complete
  std::vector<int> cpus;               // to bind to; empty: not bound
  std::string host = {};               // where an agent starts it; empty: this machine
  /// A command for the work after the end of the process, however the process ends: a program by
  /// its path, and its arguments. The command starts before the process, in the same environment,
  /// and must wait for the end of its stdin, which is the end of the process. So it also runs if
  /// the guard is killed. If the command is killed, the guard starts it again, up to three times.
  /// The process can then tell the guard more about its end (kEndPipeVariable).
  /// Empty: nothing runs.
  std::vector<std::string> after_end = {};
  friend bool operator==(const RankCommand&, const RankCommand&) = default;
};

/// The environment of this process, for `plan_ranks`.
Variables process_variables();

/// The environment of rank `rank` of the job, from these layers; a later layer overrides an earlier
/// one:
///   1. OMP_NUM_THREADS, PYTHONUNBUFFERED, PEAL_FLIGHT_DIR (if the job has one), and PEAL_SECRET
///      (unless PEAL_SECRET_FILE is set)
///   2. `inherited`
///   3. RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, NODE_RANK and
///      Horovod's names for these (kHorovodPlace), by the host or the node of the rank;
///      MASTER_ADDR, MASTER_PORT, PEAL_JOB and, on a terminal, PEAL_TERMINAL_WIDTH
///   4. the options' variables; PEAL_SECRET_FILE among them removes an inherited PEAL_SECRET
/// PEAL_LAUNCHED marks the result (config/launch_mark.h).
Variables make_environment(const LaunchOptions& options,
                           const JobContext& job,
                           Rank rank,
                           int threads,
                           const Variables& inherited);

/// Layers 1 and 4 above, and what all ranks share: PEAL_JOB, PEAL_SECRET, PEAL_TERMINAL_WIDTH.
/// `variables`: layers 2 and 3. `given`: layer 4. Without PEAL_LAUNCHED.
void add_shared_variables(const JobContext& job,
                          int threads,
                          const Variables& given,
                          Variables& variables);

/// One command per rank of this node, in rank order. `program` is the path of
/// options.command.front(). `shares` is the result of divide_cores for options.ranks ranks.
std::vector<RankCommand> plan_ranks(const LaunchOptions& options,
                                    const JobContext& job,
                                    const std::string& program,
                                    const std::vector<CoreShare>& shares,
                                    const Variables& inherited);

}  // namespace peal::launch
