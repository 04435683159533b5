// The processes of a job as commands for the launcher. Pure: made from the plan of the processes,
// and from what the agents know about their hosts. Called by job_launcher.cpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "peal/launch/agents/agent_protocol.h"
#include "peal/launch/job/process_plan.h"
#include "peal/launch/job_context.h"
#include "peal/launch/rank_command.h"

namespace peal::launch::submitted {

/// The hosts of the plan, in the order of their first processes.
std::vector<std::string> hosts_of(const ProcessPlan& plan);

/// What the processes of the host need: the commands of those without a container and the images of
/// the others, each once.
agents::HostNeeds needs_on(const std::string& host, const ProcessPlan& plan);

/// One command for each process, by rank. `facts`: the answer of each host of the plan to
/// `needs_on`. `inherited`: the environment of the launcher, without the variables of its
/// machine. Later layers override earlier ones:
///   1. what all ranks share (add_shared_variables in rank_command.h)
///   2. `inherited`, and the host's own variables; in a container, only some of them
///      (containers::inherited_in_container)
///   3. PEAL_ATTEMPT
///   4. PlannedProcess::environment
/// PEAL_LAUNCHED marks ranks, and no other processes (processes_are_ranks).
std::vector<RankCommand> job_ranks(const Job& job,
                                   const ProcessPlan& plan,
                                   const JobContext& context,
                                   int attempt,
                                   const std::map<std::string, agents::Ready>& facts,
                                   const Variables& inherited);

}  // namespace peal::launch::submitted
