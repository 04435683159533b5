#include "peal/launch/job/process_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "peal/base/bracketed.h"
#include "peal/launch/job/cluster_spec.h"
#include "peal/launch/job/node_plan.h"
#include "peal/launch/job/rank_variables.h"
#include "peal/launch/job/references.h"

namespace peal::launch {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr int kClusterPort = 2222;  // as in the managed services

/// How many nodes of the world have a rank with each local rank.
class NodesByLocalRank final {
 public:
  void add(const Role& role) {
    if (!role.in_world) return;
    const auto ranks = static_cast<std::size_t>(role.ranks_per_node);
    if (counts_.size() < ranks) counts_.resize(ranks);
    for (std::size_t i = 0; i < ranks; ++i) ++counts_[i];
  }
  int at(Rank local_rank) const {
    const auto index = static_cast<std::size_t>(local_rank);
    return index < counts_.size() ? counts_[index] : 0;
  }

 private:
  std::vector<int> counts_{};
};

/// The values from which the places of all processes follow.
struct World {
  const Job& job;
  const std::vector<PlannedNode>& nodes;
  std::span<const JobHost> hosts;
  const MasterAddress& master;
  int size = 0;  // the ranks
  int nodes_in_world = 0;
  NodesByLocalRank all{};

  const Role& role_of(const PlannedNode& node) const { return job.roles[node.role]; }
};

World world_of(const Job& job,
               const std::vector<PlannedNode>& nodes,
               std::span<const JobHost> hosts,
               const MasterAddress& master) {
  World world{.job = job, .nodes = nodes, .hosts = hosts, .master = master};
  for (const PlannedNode& node : nodes) {
    if (!world.role_of(node).in_world) continue;
    world.size += world.role_of(node).ranks_per_node;
    ++world.nodes_in_world;
    world.all.add(world.role_of(node));
  }
  return world;
}

std::string address(const World& world, const PlannedNode& node) {
  const std::string& host = world.hosts[node.host].name;
  return fmt::format("{}:{}", bracketed(host), kClusterPort + node.place_on_host);
}

std::optional<ClusterSpec> cluster_spec(const World& world) {
  if (world.job.form == JobForm::kPeal) return std::nullopt;
  std::vector<std::vector<std::string>> addresses(world.job.roles.size());
  for (const PlannedNode& node : world.nodes) addresses[node.role].push_back(address(world, node));
  return ClusterSpec(world.job, std::move(addresses));
}

/// The variables with the rank and the number of ranks.
/// `before`: the nodes before the node of the process.
void set_place(const World& world,
               const NodesByLocalRank& before,
               const PlannedProcess& process,
               Variables& variables) {
  variables["PEAL_ROLE"] = process.role;
  variables["PEAL_ROLE_RANK"] = fmt::format("{}", process.role_rank);
  if (!process.in_world) return;
  const Role& role = world.role_of(world.nodes[static_cast<std::size_t>(process.node)]);
  if (processes_are_ranks(world.job, role)) {
    set_rank_variables({.rank = process.rank,
                        .world_size = world.size,
                        .local_rank = process.local_rank,
                        .local_size = role.ranks_per_node,
                        .group = process.node,
                        .groups = world.nodes_in_world,
                        .cross_rank = before.at(process.local_rank),
                        .cross_size = world.all.at(process.local_rank),
                        .host = process.host},
                       variables);
  } else {
    set_node_variables(process.node, world.nodes_in_world, variables);
  }
  variables["MASTER_ADDR"] = world.master.host;
  variables["MASTER_PORT"] = fmt::format("{}", world.master.port);
}

/// Replaces references $(NAME), in the form that has them.
void expand(Variables own, PlannedProcess& process) {
  const Variables& outer = process.environment;
  const Lookup in_outer = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = outer.find(name);
    return found == outer.end() ? std::nullopt : std::optional(found->second);
  };
  own = expand_variables(own, in_outer);
  own.insert(outer.begin(), outer.end());
  process.environment = std::move(own);
  const Lookup in_all = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = process.environment.find(name);
    return found == process.environment.end() ? std::nullopt : std::optional(found->second);
  };
  for (std::string& word : process.command) word = expand_references(word, in_all);
  for (std::string& word : process.args) word = expand_references(word, in_all);
}

void set_environment(const World& world,
                     const std::optional<ClusterSpec>& spec,
                     const NodesByLocalRank& before,
                     PlannedProcess& process) {
  const PlannedNode& node = world.nodes[static_cast<std::size_t>(process.node)];
  Variables own = world.role_of(node).env;  // overrides the job's
  own.insert(world.job.env.begin(), world.job.env.end());
  set_place(world, before, process, process.environment);
  if (spec) process.environment.merge(spec->variables(node.role, node.place));
  if (world.job.form == JobForm::kWorkerPoolSpecs) {
    expand(std::move(own), process);
  } else {
    own.insert(process.environment.begin(), process.environment.end());
    process.environment = std::move(own);
  }
}

}  // namespace

ProcessPlan plan_processes(const Job& job,
                           std::span<const JobHost> hosts,
                           const MasterAddress& master) {
  const std::vector<PlannedNode> nodes = plan_nodes(job, hosts);
  const World world = world_of(job, nodes, hosts, master);
  const std::optional<ClusterSpec> spec = cluster_spec(world);
  ProcessPlan plan;
  NodesByLocalRank before;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Role& role = world.role_of(nodes[i]);
    for (Rank local_rank = 0; local_rank < role.ranks_per_node; ++local_rank) {
      PlannedProcess process{.host = hosts[nodes[i].host].name,
                             .role = role.name,
                             .role_rank = nodes[i].place * role.ranks_per_node + local_rank,
                             .node = static_cast<int>(i),
                             .rank = static_cast<Rank>(plan.processes.size()),
                             .local_rank = local_rank,
                             .in_world = role.in_world,
                             .image = role.image,
                             .command = role.command,
                             .args = role.args};
      set_environment(world, spec, before, process);
      plan.processes.push_back(std::move(process));
    }
    before.add(role);
  }
  for (std::size_t i = hosts.size() - static_cast<std::size_t>(job.spare_nodes); i < hosts.size();
       ++i) {
    plan.spare_hosts.push_back(hosts[i].name);
  }
  return plan;
}

}  // namespace peal::launch
