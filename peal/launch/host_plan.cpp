#include "peal/launch/host_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::launch {

HostPlan plan_hosts(std::span<const HostSlots> hosts, int ranks) {
  if (hosts.empty()) return HostPlan{{HostBlock{kDefaultHost, 0, ranks}}};
  HostPlan plan;
  Rank first = 0;
  for (const HostSlots& host : hosts) {
    const int here = std::min(host.slots, ranks - first);
    if (here > 0) plan.blocks.push_back({host.name, first, here});
    first += here;
  }
  if (first == ranks) return plan;
  throw Error(ErrorKind::kUsage,
              fmt::format("Requested more processes ({}) than there are available slots ({}): "
                          "add hosts or slots (-H host:slots, --hostfile), or start fewer ranks",
                          ranks,
                          first));
}

RankPlace place_of(const HostPlan& plan, Rank rank) {
  const auto own = std::ranges::find_if(
      plan.blocks, [&](const HostBlock& block) { return rank < block.first + block.ranks; });
  RankPlace place{.host = own->name, .local_rank = rank - own->first, .local_size = own->ranks};
  const auto has_such_a_rank = [&](const HostBlock& block) {
    return block.ranks > place.local_rank;
  };
  place.cross_rank = static_cast<Rank>(std::count_if(plan.blocks.begin(), own, has_such_a_rank));
  place.cross_size = static_cast<int>(std::ranges::count_if(plan.blocks, has_such_a_rank));
  return place;
}

}  // namespace peal::launch
