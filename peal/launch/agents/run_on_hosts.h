// Runs a command as n ranks on several hosts, each with an agent. Called by `peal run`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "peal/launch/agents/agents.h"
#include "peal/launch/attempt_loop.h"
#include "peal/launch/containers/container.h"
#include "peal/launch/job_context.h"
#include "peal/launch/launcher.h"

namespace peal::launch::agents {

/// The address at which the ranks of all hosts reach rank 0. `hosts`: the answers of the agents, in
/// the order of the ranks. Pure. The address is, in this order:
///   - the address of the first host as the launcher reaches the host;
///   - if this is a loopback address or not known: the launcher's address as another host sees it;
///   - if all hosts are the launcher's machine: 127.0.0.1.
std::string address_of_rank_0(const std::vector<Ready>& hosts);

/// The commands of all ranks, in rank order. `facts`: the answer of each host, by its name.
/// `inherited`: the environment of the launcher. `container`: in which each rank runs; nothing: in
/// none. Pure.
std::vector<RankCommand> plan_ranks_on_hosts(
    const LaunchOptions& options,
    const JobContext& job,
    const std::map<std::string, Ready>& facts,
    const Variables& inherited,
    const std::optional<containers::Container>& container = {});

/// Hosts that cannot be used.
struct Refusal {
  std::string text;   // lines: one for each host, or one if this machine has no engine
  int exit_code = 1;  // 126 or 127 if the command is the problem on each of them
  std::vector<std::pair<std::string, std::string>> hosts{};  // and why
};

/// The hosts that cannot be used, when all have answered. Returns nothing if all are ready.
std::optional<Refusal> refusal_of(const Agents& agents);

/// The end of an attempt that has started no rank. `number`: of the attempt. After attempt 0 the
/// job ends, because a host that cannot be used is then a mistake of the user. After later
/// attempts, spare hosts, and hosts that become free, may replace the refused ones. Pure.
AttemptEnd end_of(const Refusal& refusal, int number);

/// For AttemptEnd: whether a signal has ended an agent, or a host cannot be used.
bool may_be_preempted(const Agents& agents);

/// Connects with the hosts of options.hosts that have ranks. Returns 0 when all have answered, or
/// the signal that ends the launch.
int connect(Agents& agents, const LaunchOptions& options, SignalReader& signals);

/// The same as `run` in launcher.h, on hosts that `connect` has connected. `records`: the folder on
/// this machine for the ends of the ranks; empty: none.
LaunchReport run_on_hosts(const LaunchOptions& options,
                          const JobContext& job,
                          Agents& agents,
                          const Variables& inherited,
                          const std::optional<containers::Container>& container,
                          const std::string& records,
                          Target out,
                          Target err,
                          SignalReader& signals);

}  // namespace peal::launch::agents
