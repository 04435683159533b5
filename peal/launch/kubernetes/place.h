// The variables that tell a node its place in the job. Pure. Called by variables.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/kubernetes/manifests.h"

namespace peal::launch::kubernetes {

/// The nodes that one Indexed Job starts: all nodes of a role, or one node. A role is divided into
/// single nodes if a shell would have to compute its ranks, but the command is unknown, because the
/// command is the entrypoint of the image.
struct NodeGroup {
  const Job& job;
  std::size_t role_index = 0;
  int first_index = 0;  // of its first node in the role
  int nodes = 1;
  int first_rank = 0;      // of its first node, among the nodes of the job
  int nodes_in_world = 1;  // of the job

  const Role& role() const { return job.roles[role_index]; }
  bool is_divided() const { return nodes < role().nodes.most; }
  /// The ranks are computed in the container: Kubernetes knows only the index of a pod.
  bool needs_shell() const { return role().in_world && first_rank > 0 && nodes > 1; }
  /// Whether a node is one rank. Otherwise RANK and WORLD_SIZE count nodes, because `peal run`
  /// starts the ranks: peal adds it for Role::ranks_per_node, or the user's command contains it. In
  /// the managed forms, RANK and WORLD_SIZE always count nodes.
  bool is_rank() const;

  /// The name of the Indexed Job.
  std::string name(std::string_view id) const;
  /// The name by which a node is reached in the namespace. `place`: of the node in this group.
  std::string host(std::string_view id, int place) const;
};

/// By rank.
std::vector<NodeGroup> node_groups(const Job& job);

/// Entries for the list "env" of a container.
Json literal(std::string_view name, std::string_view value);
Json from_secret(std::string_view name, std::string_view secret, std::string_view key);

/// The variables of a node:
/// - PEAL_ROLE, PEAL_ROLE_RANK (of the node), PEAL_JOB;
/// - in the world: MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK, GROUP_RANK, NODE_RANK,
///   GROUP_WORLD_SIZE;
/// - if the node is a rank: LOCAL_RANK, LOCAL_WORLD_SIZE and Horovod's names.
/// PEAL_ROLE_RANK comes first, because later values may refer to it.
Json place_variables(const NodeGroup& group, const ManifestOptions& options);

/// The ranks, as assignments in the language of the shell: "RANK=$((JOB_COMPLETION_INDEX + 1))".
/// Empty unless the role needs a shell.
std::vector<std::string> shell_assignments(const NodeGroup& group);

}  // namespace peal::launch::kubernetes
