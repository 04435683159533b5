// The command of a worker as a value. Pure. Called by driver.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peal/launch/elastic/state.h"
#include "peal/launch/job_context.h"
#include "peal/launch/options.h"
#include "peal/launch/rank_command.h"

namespace peal::launch::elastic {

/// What all workers on a host share.
struct WorkerKit {
  std::string program;                   // the path of the command
  std::vector<std::string> arguments{};  // of the program, its name included
  Variables common{};                    // see common_environment
  std::string driver{};                  // PEAL_ELASTIC_DRIVER
  std::string machine{};                 // as in HostFacts
  std::optional<std::string> records{};  // as in HostFacts
};

/// The environment of every worker on a host, without its identity. `inherited`, the environment of
/// the host, without the variables of a rank, then HOROVOD_ELASTIC, PEAL_JOB, PEAL_SECRET (unless
/// the user set one, or a file), then the options' variables. RANK and similar variables are not
/// set: they differ between rounds.
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
