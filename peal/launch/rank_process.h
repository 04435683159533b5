// The process of each rank as a value, before it is started: made by pure functions from the
// options, the job and the cores. Called by the launcher.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "peal/base/units.h"
#include "peal/launch/cores.h"
#include "peal/launch/job.h"
#include "peal/launch/options.h"

namespace peal::launch {

using Variables = std::map<std::string, std::string>;

struct RankProcess {
  Rank rank = 0;
  std::string program;                 // its path
  std::vector<std::string> arguments;  // the first is the program as the user named it
  Variables environment;               // all of it
  std::vector<int> cpus;               // to bind to; empty: not bound
  friend bool operator==(const RankProcess&, const RankProcess&) = default;
};

/// The environment of this process, to hand to `plan_ranks`.
Variables process_variables();

/// What rank `rank` finds: `inherited`; over it RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
/// MASTER_ADDR, MASTER_PORT, PEAL_JOB and, on a terminal, PEAL_TERMINAL_WIDTH; where not inherited
/// PEAL_SECRET (unless there is a PEAL_SECRET_FILE), PEAL_FLIGHT_DIR (if the job has one),
/// OMP_NUM_THREADS and PYTHONUNBUFFERED; over all of it the options' variables, of which
/// PEAL_SECRET_FILE replaces an inherited PEAL_SECRET; and the mark of all this, PEAL_LAUNCHED.
Variables make_environment(const LaunchOptions& options,
                           const Job& job,
                           Rank rank,
                           int threads,
                           const Variables& inherited);

/// One process per rank, in rank order. `program` is the path of options.command.front(), `shares`
/// what divide_cores gives for so many ranks.
std::vector<RankProcess> plan_ranks(const LaunchOptions& options,
                                    const Job& job,
                                    const std::string& program,
                                    const std::vector<CoreShare>& shares,
                                    const Variables& inherited);

}  // namespace peal::launch
