#include "peal/launch/agents/run_on_hosts.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "peal/base/bracketed.h"
#include "peal/launch/agents/agent_guard.h"
#include "peal/launch/agents/machine_variables.h"
#include "peal/launch/containers/container_command.h"
#include "peal/launch/cores.h"
#include "peal/launch/host_list.h"
#include "peal/launch/host_plan.h"

namespace peal::launch::agents {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

bool is_reachable(const std::string& address) {
  return !address.empty() && !address.starts_with("127.") && address != "::1";
}

}  // namespace

std::string address_of_rank_0(const std::vector<Ready>& hosts) {
  if (hosts.empty()) return kLoopback;
  if (is_reachable(hosts.front().address)) return hosts.front().address;
  for (const Ready& host : hosts) {
    if (is_reachable(host.launcher_address)) return host.launcher_address;
  }
  return kLoopback;
}

std::vector<RankCommand> plan_ranks_on_hosts(
    const LaunchOptions& options,
    const JobContext& job,
    const std::map<std::string, Ready>& facts,
    const Variables& inherited,
    const std::optional<containers::Container>& container) {
  std::vector<RankCommand> ranks;
  for (const HostBlock& block : plan_hosts(options.hosts, options.ranks).blocks) {
    const Ready& host = facts.at(block.name);
    Variables environment = part_of(inherited, Part::kJob);
    environment.insert(host.own.begin(), host.own.end());
    JobContext on_host = job;
    on_host.flights = host.records;
    const Variables& inside =
        container ? containers::inherited_in_container(environment) : environment;
    const FoundCommand command =
        container ? FoundCommand{options.command.front(), options.command} : host.commands.front();
    const auto shares = divide_cores(host.cores, block.ranks, host.quota);
    for (Rank rank = block.first; rank < block.first + block.ranks; ++rank) {
      const CoreShare& share = shares[static_cast<std::size_t>(rank - block.first)];
      ranks.push_back(RankCommand{
          .rank = rank,
          .program = command.program,
          .arguments = command.command,
          .environment = make_environment(options, on_host, rank, share.threads, inside),
          .cpus = options.binding == Binding::kCores ? share.cpus : std::vector<int>{},
          .host = block.name,
      });
      if (!container) continue;
      ranks.back() =
          containers::in_container(ranks.back(), *container, host.container_engine, environment);
    }
  }
  return ranks;
}

std::optional<Refusal> refusal_of(const Agents& agents) {
  Refusal refusal;
  std::string lines;
  std::string engine_problem;
  std::set<int> codes;
  for (int i = 0; i < agents.count(); ++i) {
    const AgentHost& host = agents.host(i);
    if (host.is_ready()) continue;
    refusal.hosts.emplace_back(host.name(), host.problem());
    codes.insert(host.exit_code());
    if (host.lacks_engine()) engine_problem = host.problem();
    lines += fmt::format("  {}: {}\n", bracketed(host.name()), host.problem());
  }
  if (refusal.hosts.empty()) return std::nullopt;
  refusal.text = fmt::format("no rank was started, because {} of {} host{} cannot be used:\n{}",
                             refusal.hosts.size(),
                             agents.count(),
                             agents.count() == 1 ? "" : "s",
                             lines);
  if (!engine_problem.empty()) {
    refusal.text = fmt::format("no rank was started: {}\n", engine_problem);
  }
  if (codes.size() == 1) refusal.exit_code = std::max(1, *codes.begin());
  return refusal;
}

AttemptEnd end_of(const Refusal& refusal, int number) {
  return {.exit_code = refusal.exit_code,
          .next = number > 0 ? AfterAttempt::kRetry : AfterAttempt::kEnd,
          .lost = refusal.hosts,
          .may_be_preempted = true};
}

bool may_be_preempted(const Agents& agents) {
  for (int i = 0; i < agents.count(); ++i) {
    const AgentHost& host = agents.host(i);
    if (host.is_ending() || host.state() == AgentHost::State::kRefused) return true;
  }
  return false;
}

int connect(Agents& agents, const LaunchOptions& options, SignalReader& signals) {
  for (const HostBlock& block : plan_hosts(options.hosts, options.ranks).blocks) {
    agents.add(block.name);
  }
  int signal = 0;
  agents.await_all([&] { return (signal = signals.take_end()) != 0; });
  return signal;
}

LaunchReport run_on_hosts(const LaunchOptions& options,
                          const JobContext& job,
                          Agents& agents,
                          const Variables& inherited,
                          const std::optional<containers::Container>& container,
                          const std::string& records,
                          Target out,
                          Target err,
                          SignalReader& signals) {
  std::vector<Ready> hosts;
  std::map<std::string, Ready> facts;
  for (int i = 0; i < agents.count(); ++i) {
    hosts.push_back(agents.host(i).facts());
    facts.emplace(agents.host(i).name(), hosts.back());
  }
  JobContext shared = job;
  const rendezvous::NodePlace& chosen = options.node;  // by the user
  shared.host = chosen.master.empty() ? address_of_rank_0(hosts) : chosen.master;
  shared.port = chosen.port == 0 ? hosts.front().port : chosen.port;
  const auto ranks = plan_ranks_on_hosts(options, shared, facts, inherited, container);
  const GuardMaker make_guard = [&] {
    return std::make_unique<AgentGuard>(agents, Starts::kAtOnce);
  };
  return run(options, ranks, out, err, signals, make_guard, {.folder = records, .job = job.id});
}

}  // namespace peal::launch::agents
