// The command of a worker as a value. Pure. Called by driver.cpp.
#pragma once

#include <string>

#include "peal/launch/elastic/state.h"
#include "peal/launch/job_context.h"
#include "peal/launch/options.h"
#include "peal/launch/rank_command.h"

namespace peal::launch::elastic {

/// What all workers of a job share.
struct WorkerKit {
  std::string program;   // the path of options.command.front()
  Variables common{};    // see common_environment
  std::string driver{};  // PEAL_ELASTIC_DRIVER
};

/// The environment of every worker, without its identity. `inherited` without the variables of
/// a rank, then HOROVOD_ELASTIC, PEAL_JOB, PEAL_SECRET (unless the user set one, or a file), then
/// the options' variables. RANK and similar variables are not set: they differ between rounds.
Variables common_environment(const LaunchOptions& options,
                             const JobContext& job,
                             const Variables& inherited);

/// `process`: the number by which the guard knows the process. `share`: its cores.
RankCommand worker_command(const LaunchOptions& options,
                           const WorkerKit& kit,
                           const Worker& worker,
                           int process,
                           const CoreShare& share);

}  // namespace peal::launch::elastic
