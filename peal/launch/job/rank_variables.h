// The variables that tell a process its place in a job: the same for every launcher of peal. Pure.
// Called by process_plan.cpp, and by rank_command.cpp for `peal run`.
#pragma once

#include <map>
#include <string>

#include "peal/base/units.h"

namespace peal::launch {

/// The place of a rank. A group is a host, or a node of several on one host. The cross rank counts
/// the groups that have a rank with the same local rank, as in Horovod.
struct WorldPlace {
  Rank rank = 0;
  int world_size = 1;
  Rank local_rank = 0;
  int local_size = 1;
  int group = 0;
  int groups = 1;
  Rank cross_rank = 0;
  int cross_size = 1;
  std::string host{};
  friend bool operator==(const WorldPlace&, const WorldPlace&) = default;
};

/// Sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, NODE_RANK,
/// and Horovod's names for these (kHorovodPlace in config/launch_mark.h).
void set_rank_variables(const WorldPlace& place, std::map<std::string, std::string>& variables);

/// Sets the variables of a node whose program starts the ranks itself, such as `peal run -n 4`:
/// RANK and GROUP_RANK count nodes. There is no LOCAL_RANK, by which `peal run` would take the node
/// for a rank (rendezvous/read_node_place.h).
void set_node_variables(int node, int nodes, std::map<std::string, std::string>& variables);

/// Removes all of these variables, and MASTER_ADDR and MASTER_PORT: they belong to another job.
void remove_rank_variables(std::map<std::string, std::string>& variables);

}  // namespace peal::launch
