#include "peal/launch/kubernetes/place.h"

#include <fmt/format.h>

#include "peal/launch/kubernetes/names.h"
#include "peal/launch/kubernetes/words.h"

namespace peal::launch::kubernetes {
namespace {

constexpr std::string_view kIndexPath =
    "metadata.annotations['batch.kubernetes.io/job-completion-index']";

/// The index of the pod in its Indexed Job.
Json from_index(std::string_view name) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", kIndexPath}}}}}};
}

/// The variables whose value is the rank of the node.
std::vector<std::string> rank_names(const NodeGroup& group) {
  std::vector<std::string> names = {"RANK", "GROUP_RANK", "NODE_RANK"};
  if (group.is_rank()) {
    names.emplace_back("HOROVOD_RANK");
    names.emplace_back("HOROVOD_CROSS_RANK");
  }
  return names;
}

void add_ranks(Json& list, const NodeGroup& group) {
  if (group.needs_shell()) return;
  for (const std::string& name : rank_names(group)) {
    list.push_back(group.nodes > 1 ? from_index(name)
                                   : literal(name, fmt::format("{}", group.first_rank)));
  }
}

void add_local_ranks(Json& list, const NodeGroup& group, std::string_view id) {
  const std::string all = fmt::format("{}", group.nodes_in_world);
  for (const char* const name : {"LOCAL_RANK", "HOROVOD_LOCAL_RANK"}) {
    list.push_back(literal(name, "0"));
  }
  for (const char* const name : {"LOCAL_WORLD_SIZE", "HOROVOD_LOCAL_SIZE"}) {
    list.push_back(literal(name, "1"));
  }
  for (const char* const name : {"HOROVOD_SIZE", "HOROVOD_CROSS_SIZE"}) {
    list.push_back(literal(name, all));
  }
  const std::string place = group.nodes > 1 ? "$(PEAL_ROLE_RANK)" : "0";
  list.push_back(
      literal("HOROVOD_HOSTNAME", fmt::format("{}-{}.{}", group.name(id), place, job_name(id))));
}

}  // namespace

bool NodeGroup::is_rank() const {
  return role().ranks_per_node == 1 && processes_are_ranks(job, role());
}

std::string NodeGroup::name(std::string_view id) const {
  const int all = role().nodes.most;
  return is_divided() ? node_job_name(id, role().name, all, first_index)
                      : role_job_name(id, role().name, all);
}

std::string NodeGroup::host(std::string_view id, int place) const {
  return fmt::format("{}-{}.{}", name(id), place, job_name(id));
}

std::vector<NodeGroup> node_groups(const Job& job) {
  int in_world = 0;
  for (const Role& role : job.roles) in_world += role.in_world ? role.nodes.most : 0;
  std::vector<NodeGroup> groups;
  int rank = 0;
  for (std::size_t index = 0; index < job.roles.size(); ++index) {
    const Role& role = job.roles[index];
    NodeGroup group{job, index, 0, role.nodes.most, rank, in_world};
    rank += role.nodes.most;
    if (!group.needs_shell() || !role.command.empty()) {
      groups.push_back(group);
      continue;
    }
    group.nodes = 1;
    for (; group.first_rank < rank; ++group.first_rank, ++group.first_index) {
      groups.push_back(group);
    }
  }
  return groups;
}

Json literal(std::string_view name, std::string_view value) {
  return {{"name", name}, {"value", value}};
}

Json from_secret(std::string_view name, std::string_view secret, std::string_view key) {
  return {{"name", name}, {"valueFrom", {{"secretKeyRef", {{"name", secret}, {"key", key}}}}}};
}

Json place_variables(const NodeGroup& group, const ManifestOptions& options) {
  const Role& role = group.role();
  Json list = Json::array();
  list.push_back(group.nodes > 1 ? from_index("PEAL_ROLE_RANK")
                                 : literal("PEAL_ROLE_RANK", fmt::format("{}", group.first_index)));
  list.push_back(literal("PEAL_ROLE", role.name));
  list.push_back(literal("PEAL_JOB", unexpanded(options.id)));
  if (!role.in_world) return list;
  const std::string all = fmt::format("{}", group.nodes_in_world);
  list.push_back(literal("MASTER_ADDR", node_groups(group.job).front().host(options.id, 0)));
  list.push_back(literal("MASTER_PORT", fmt::format("{}", kMasterPort)));
  list.push_back(literal("WORLD_SIZE", all));
  list.push_back(literal("GROUP_WORLD_SIZE", all));
  add_ranks(list, group);
  if (group.is_rank()) add_local_ranks(list, group, options.id);
  return list;
}

std::vector<std::string> shell_assignments(const NodeGroup& group) {
  std::vector<std::string> assignments;
  if (!group.needs_shell()) return assignments;
  for (const std::string& name : rank_names(group)) {
    assignments.push_back(fmt::format("{}=$((JOB_COMPLETION_INDEX + {}))", name, group.first_rank));
  }
  return assignments;
}

}  // namespace peal::launch::kubernetes
