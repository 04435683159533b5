// Which rank runs on which host, as a value. Pure functions make it. Called when a launch is
// planned.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "peal/base/units.h"
#include "peal/launch/host_list.h"

namespace peal::launch {

/// The name of the host of all ranks if the user names no hosts.
inline constexpr const char* kDefaultHost = "localhost";

/// The ranks of a host: `ranks` of them, from `first` on.
struct HostBlock {
  std::string name;
  Rank first = 0;
  int ranks = 0;
  friend bool operator==(const HostBlock&, const HostBlock&) = default;
};

/// The hosts that have ranks, in the order of their ranks.
struct HostPlan {
  std::vector<HostBlock> blocks;
  friend bool operator==(const HostPlan&, const HostPlan&) = default;
};

/// Gives each host as many ranks as it has slots, the first hosts first. `hosts` may be empty: then
/// all ranks are on "localhost".
/// Errors: usage if there are fewer slots than ranks.
HostPlan plan_hosts(std::span<const HostSlots> hosts, int ranks);

/// Where a rank is. As in Horovod, the cross rank counts the hosts that have a rank with the same
/// local rank.
struct RankPlace {
  std::string host;
  Rank local_rank = 0;
  int local_size = 1;
  Rank cross_rank = 0;
  int cross_size = 1;
  friend bool operator==(const RankPlace&, const RankPlace&) = default;
};

/// `rank` is a rank of the plan. Cost: the number of hosts.
RankPlace place_of(const HostPlan& plan, Rank rank);

}  // namespace peal::launch
