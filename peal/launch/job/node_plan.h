// Which node of a job is on which host. The first half of process_plan.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "peal/launch/job/process_plan.h"

namespace peal::launch {

struct PlannedNode {
  std::size_t role = 0;   // its index in Job::roles
  int place = 0;          // among the nodes of the role
  std::size_t host = 0;   // its index among the hosts
  int place_on_host = 0;  // among the nodes of the host
  friend bool operator==(const PlannedNode&, const PlannedNode&) = default;
};

/// The nodes of all roles, in their order. Errors: usage, if there are too few hosts.
std::vector<PlannedNode> plan_nodes(const Job& job, std::span<const JobHost> hosts);

/// How many ranks of the job have room on the hosts; with too few hosts, fewer than the job needs.
int ranks_with_room(const Job& job, std::span<const JobHost> hosts);

}  // namespace peal::launch
