#include "peal/launch/submitted/job_ranks.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "peal/config/environment.h"
#include "peal/config/launch_mark.h"
#include "peal/launch/attempt_loop.h"
#include "peal/launch/containers/container_command.h"
#include "peal/launch/cores.h"
#include "peal/launch/submitted/job_containers.h"

namespace peal::launch::submitted {
namespace {

agents::WantedCommand command_of(const PlannedProcess& process) {
  agents::WantedCommand command{.words = process.command};
  command.words.insert(command.words.end(), process.args.begin(), process.args.end());
  const auto path = process.environment.find("PATH");
  if (path != process.environment.end()) command.path = path->second;
  return command;
}

const Role& role_of(const Job& job, const PlannedProcess& process) {
  return *std::ranges::find(job.roles, process.role, &Role::name);
}

/// What the processes of one host share.
struct HostPart {
  const agents::Ready& facts;
  std::vector<agents::WantedCommand> commands;
  std::vector<CoreShare> shares;
  Variables outside;  // of processes without a container, and of the engine's command
  std::size_t used_shares = 0;
};

HostPart part_of_host(const std::string& host,
                      const ProcessPlan& plan,
                      const agents::Ready& facts,
                      Variables outside) {
  const auto processes = std::ranges::count(plan.processes, host, &PlannedProcess::host);
  for (const auto& [name, value] : facts.own) outside.insert_or_assign(name, value);
  return {.facts = facts,
          .commands = needs_on(host, plan).commands,
          .shares = divide_cores(facts.cores, static_cast<int>(processes), facts.quota),
          .outside = std::move(outside)};
}

Variables environment_of(const Job& job,
                         const PlannedProcess& process,
                         const JobContext& context,
                         int attempt,
                         const HostPart& host,
                         int threads,
                         int world_size) {
  Variables variables =
      process.image.empty() ? host.outside : containers::inherited_in_container(host.outside);
  variables[kAttemptVariable] = fmt::format("{}", attempt);
  JobContext on_host = context;
  on_host.flights = host.facts.records;
  add_shared_variables(on_host, threads, process.environment, variables);
  const Role& role = role_of(job, process);
  if (processes_are_ranks(job, role)) {
    if (role.ranks_per_node == 1) variables[kNodeMark] = "1";
    variables[kLaunchMark] = launch_mark(fixed_environment(variables), process.rank, world_size);
  }
  return variables;
}

/// The threads of a rank: those of its share of the host's cores, but in a container not more than
/// its limit of CPUs.
int threads_of(const CoreShare& share, const std::optional<containers::Container>& container) {
  if (!container || !container->cpus) return share.threads;
  return std::clamp(static_cast<int>(*container->cpus), 1, share.threads);
}

/// The command, with the program that the agent has found on its host. In a container, the engine
/// finds the program in the image.
agents::FoundCommand found_command(const PlannedProcess& process, const HostPart& host) {
  const agents::WantedCommand wanted = command_of(process);
  if (!process.image.empty()) return {.program = {}, .command = wanted.words};
  const auto found = std::ranges::find(host.commands, wanted);
  return host.facts.commands[static_cast<std::size_t>(found - host.commands.begin())];
}

}  // namespace

std::vector<std::string> hosts_of(const ProcessPlan& plan) {
  std::vector<std::string> hosts;
  for (const PlannedProcess& process : plan.processes) {
    if (std::ranges::find(hosts, process.host) == hosts.end()) hosts.push_back(process.host);
  }
  return hosts;
}

agents::HostNeeds needs_on(const std::string& host, const ProcessPlan& plan) {
  agents::HostNeeds needs;
  const auto add = [](auto& all, auto one) {
    if (std::ranges::count(all, one) == 0) all.push_back(std::move(one));
  };
  for (const PlannedProcess& process : plan.processes) {
    if (process.host != host) continue;
    if (process.image.empty()) {
      add(needs.commands, command_of(process));
    } else {
      add(needs.images, process.image);
    }
  }
  return needs;
}

std::vector<RankCommand> job_ranks(const Job& job,
                                   const ProcessPlan& plan,
                                   const JobContext& context,
                                   int attempt,
                                   const std::map<std::string, agents::Ready>& facts,
                                   const Variables& inherited) {
  std::map<std::string, HostPart> hosts;
  for (const std::string& host : hosts_of(plan)) {
    hosts.emplace(host, part_of_host(host, plan, facts.at(host), inherited));
  }
  const auto world_size =
      static_cast<int>(std::ranges::count(plan.processes, true, &PlannedProcess::in_world));
  std::vector<RankCommand> ranks;
  for (const PlannedProcess& process : plan.processes) {
    HostPart& host = hosts.at(process.host);
    const CoreShare& share = host.shares[host.used_shares++];
    const agents::FoundCommand command = found_command(process, host);
    std::optional<containers::Container> container;
    if (!process.image.empty()) {
      container = container_of(job, role_of(job, process), attempt, host.facts.cores);
    }
    const int threads = threads_of(share, container);
    ranks.push_back(RankCommand{
        .rank = process.rank,
        .program = command.program,
        .arguments = command.command,
        .environment = environment_of(job, process, context, attempt, host, threads, world_size),
        .cpus = share.cpus,
        .host = process.host,
    });
    if (!container) continue;
    ranks.back() = containers::in_container(
        ranks.back(), *container, host.facts.container_engine, host.outside);
  }
  return ranks;
}

}  // namespace peal::launch::submitted
