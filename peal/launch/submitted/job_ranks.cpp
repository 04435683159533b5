#include "peal/launch/submitted/job_ranks.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/config/environment.h"
#include "peal/config/launch_mark.h"
#include "peal/launch/attempt_loop.h"
#include "peal/launch/cores.h"

namespace peal::launch::submitted {
namespace {

agents::WantedCommand command_of(const PlannedProcess& process) {
  agents::WantedCommand command{.words = process.command};
  command.words.insert(command.words.end(), process.args.begin(), process.args.end());
  const auto path = process.environment.find("PATH");
  if (path != process.environment.end()) command.path = path->second;
  return command;
}

bool is_rank(const Job& job, const PlannedProcess& process) {
  const auto role = std::ranges::find(job.roles, process.role, &Role::name);
  return processes_are_ranks(job, *role);
}

/// What the processes of one host share.
struct HostPart {
  const agents::Ready& facts;
  std::vector<agents::WantedCommand> commands;
  std::vector<CoreShare> shares;
  std::size_t used_shares = 0;
};

HostPart part_of_host(const std::string& host,
                      const ProcessPlan& plan,
                      const agents::Ready& facts) {
  const auto processes = std::ranges::count(plan.processes, host, &PlannedProcess::host);
  return {.facts = facts,
          .commands = commands_on(host, plan),
          .shares = divide_cores(facts.cores, static_cast<int>(processes), facts.quota)};
}

Variables environment_of(const Job& job,
                         const PlannedProcess& process,
                         const JobContext& context,
                         int attempt,
                         const HostPart& host,
                         int threads,
                         const Variables& inherited,
                         int world_size) {
  Variables variables = inherited;
  for (const auto& [name, value] : host.facts.own) variables.insert_or_assign(name, value);
  variables[kAttemptVariable] = fmt::format("{}", attempt);
  JobContext on_host = context;
  on_host.flights = host.facts.records;
  add_shared_variables(on_host, threads, process.environment, variables);
  if (is_rank(job, process)) {
    variables[kLaunchMark] = launch_mark(fixed_environment(variables), process.rank, world_size);
  }
  return variables;
}

}  // namespace

std::vector<std::string> hosts_of(const ProcessPlan& plan) {
  std::vector<std::string> hosts;
  for (const PlannedProcess& process : plan.processes) {
    if (std::ranges::find(hosts, process.host) == hosts.end()) hosts.push_back(process.host);
  }
  return hosts;
}

std::vector<agents::WantedCommand> commands_on(const std::string& host, const ProcessPlan& plan) {
  std::vector<agents::WantedCommand> commands;
  for (const PlannedProcess& process : plan.processes) {
    if (process.host != host) continue;
    agents::WantedCommand command = command_of(process);
    if (std::ranges::count(commands, command) == 0) commands.push_back(std::move(command));
  }
  return commands;
}

std::vector<RankCommand> job_ranks(const Job& job,
                                   const ProcessPlan& plan,
                                   const JobContext& context,
                                   int attempt,
                                   const std::map<std::string, agents::Ready>& facts,
                                   const Variables& inherited) {
  std::map<std::string, HostPart> hosts;
  for (const std::string& host : hosts_of(plan)) {
    hosts.emplace(host, part_of_host(host, plan, facts.at(host)));
  }
  const auto world_size =
      static_cast<int>(std::ranges::count(plan.processes, true, &PlannedProcess::in_world));
  std::vector<RankCommand> ranks;
  for (const PlannedProcess& process : plan.processes) {
    HostPart& host = hosts.at(process.host);
    const CoreShare& share = host.shares[host.used_shares++];
    const auto found = std::ranges::find(host.commands, command_of(process));
    const agents::FoundCommand& command =
        host.facts.commands[static_cast<std::size_t>(found - host.commands.begin())];
    ranks.push_back(RankCommand{
        .rank = process.rank,
        .program = command.program,
        .arguments = command.command,
        .environment = environment_of(
            job, process, context, attempt, host, share.threads, inherited, world_size),
        .cpus = share.cpus,
        .host = process.host,
    });
  }
  return ranks;
}

}  // namespace peal::launch::submitted
