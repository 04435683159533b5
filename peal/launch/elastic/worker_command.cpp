#include "peal/launch/elastic/worker_command.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "peal/config/config.h"
#include "peal/config/launch_mark.h"
#include "peal/rendezvous/elastic_protocol.h"

namespace peal::launch::elastic {
namespace {

/// Variables that describe a rank of another job, or that are not the same in all rounds.
constexpr std::array kOfARank = {"RANK",
                                 "LOCAL_RANK",
                                 "WORLD_SIZE",
                                 "LOCAL_WORLD_SIZE",
                                 "MASTER_ADDR",
                                 "MASTER_PORT",
                                 "GROUP_RANK",
                                 "GROUP_WORLD_SIZE",
                                 "NODE_RANK",
                                 "PEAL_TERMINAL_WIDTH",
                                 kLaunchMark,
                                 "HOROVOD_RANK",
                                 "HOROVOD_SIZE",
                                 "HOROVOD_LOCAL_SIZE",
                                 "HOROVOD_CROSS_RANK",
                                 "HOROVOD_CROSS_SIZE"};

bool sets(const LaunchOptions& options, std::string_view name) {
  return std::ranges::count(options.variables, name, &Assignment::name) > 0;
}

}  // namespace

Variables common_environment(const LaunchOptions& options,
                             const JobContext& job,
                             const Variables& inherited) {
  Variables variables = inherited;
  for (const char* const name : kOfARank) variables.erase(name);
  variables["HOROVOD_ELASTIC"] = "1";
  variables["PEAL_JOB"] = job.id;
  variables.try_emplace("PYTHONUNBUFFERED", "1");  // a crash would lose the last lines
  if (variables["PEAL_SECRET"].empty()) variables.erase("PEAL_SECRET");
  if (sets(options, "PEAL_SECRET_FILE")) {
    variables.erase("PEAL_SECRET");  // workers would prefer it to the file
  } else if (!inherited.contains("PEAL_SECRET_FILE")) {
    variables.try_emplace("PEAL_SECRET", job.secret.text());
  }
  for (const Assignment& added : options.variables) variables[added.name] = added.value;
  variables.erase(kFlightDirVariable);  // each round has its own folder
  return variables;
}

RankCommand worker_command(const LaunchOptions& options,
                           const WorkerKit& kit,
                           const Worker& worker,
                           int process,
                           const CoreShare& share) {
  RankCommand command{
      .rank = process,
      .program = kit.program,
      .arguments = kit.arguments,
      .environment = kit.common,
      .cpus = options.binding == Binding::kCores ? share.cpus : std::vector<int>{},
      .host = worker.host,
  };
  Variables& variables = command.environment;
  variables["HOROVOD_HOSTNAME"] = worker.host;
  variables["HOROVOD_LOCAL_RANK"] = fmt::format("{}", worker.slot);
  variables[rendezvous::kElasticDriverVariable] = kit.driver;
  variables[rendezvous::kElasticWorkerVariable] = fmt::format("{}", worker.number);
  variables.try_emplace("OMP_NUM_THREADS", fmt::format("{}", share.threads));
  return command;
}

}  // namespace peal::launch::elastic
