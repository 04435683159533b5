// Which process runs where, with which command and environment: a pure function of the job and the
// hosts. Every runner starts these processes. `peal submit --dry-run` shows them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "peal/base/units.h"
#include "peal/launch/job/job.h"

namespace peal::launch {

/// A host, and how many ranks may run there.
struct JobHost {
  std::string name;
  int slots = 1;
  friend bool operator==(const JobHost&, const JobHost&) = default;
};

/// Where the ranks meet: the host of rank 0.
struct MasterAddress {
  std::string host;
  int port = 0;
  friend bool operator==(const MasterAddress&, const MasterAddress&) = default;
};

struct PlannedProcess {
  std::string host;
  std::string role;
  int role_rank = 0;     // among the processes of the role
  int node = 0;          // among all nodes; the nodes of a role follow each other
  Rank rank = 0;         // among all processes; below WORLD_SIZE if it is in the world
  Rank local_rank = 0;   // among the processes of the node
  bool in_world = true;  // as Role::in_world
  std::string image{};
  std::vector<std::string> command{};  // replaces the image's entrypoint; empty: the entrypoint
  std::vector<std::string> args{};     // after the command
  /// The variables that the job and the plan set, without the inherited ones.
  std::map<std::string, std::string> environment{};
  friend bool operator==(const PlannedProcess&, const PlannedProcess&) = default;
};

struct ProcessPlan {
  std::vector<PlannedProcess> processes{};  // by rank
  std::vector<std::string> spare_hosts{};   // Job::spare_nodes of them
  friend bool operator==(const ProcessPlan&, const ProcessPlan&) = default;
};

/// Plans the processes of a job that fulfils `check`.
///   Nodes are placed in the order of their roles, on the hosts in their order. A host takes a node
///   if the host has slots for the ranks of the node, or if the host has no node yet. The last
///   Job::spare_nodes hosts stay free. A role with nodes 1:4 gets as many nodes as there is room
///   for, earlier roles first.
///   Environment: the variables of the job, then those of the role, then (decisions/0049):
///     PEAL_ROLE and PEAL_ROLE_RANK; and in the world MASTER_ADDR, MASTER_PORT, and the variables
///     of a rank or of a node (rank_variables.h, processes_are_ranks). A node counts as a host.
///   The managed forms also set CLUSTER_SPEC and TF_CONFIG, unless the job sets them. Their ports
///   are 2222, and one more for each further node on a host.
/// Errors: usage: not enough hosts; references $(NAME) that grow without bound.
/// Cost: the number of processes; in the managed forms, its square.
ProcessPlan plan_processes(const Job& job,
                           std::span<const JobHost> hosts,
                           const MasterAddress& master);

/// The plan for people: the same text for the same plan. Values of variables whose name contains
/// SECRET, TOKEN, PASSWORD or KEY are "(hidden)", also inside other values and commands.
std::string to_text(const ProcessPlan& plan, const Job& job, const MasterAddress& master);

}  // namespace peal::launch
