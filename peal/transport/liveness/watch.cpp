#include "peal/transport/liveness/watch.h"

#include <algorithm>
#include <cstdlib>

namespace peal::transport {
namespace {

bool watch_each_other(int a, int b, int hosts) {
  if (a == b) return false;
  if (hosts <= kWatchedHosts + 1) return true;
  const int apart = std::abs(a - b);
  return std::min(apart, hosts - apart) <= kWatchedHosts / 2;
}

}  // namespace

std::vector<Rank> watched_by(Rank self, std::span<const int> hosts) {
  const int count = hosts.empty() ? 0 : *std::ranges::max_element(hosts) + 1;
  std::vector<int> size(static_cast<std::size_t>(count));
  std::vector<int> place;  // of each rank among the ranks of its host
  for (const int host : hosts) place.push_back(size[static_cast<std::size_t>(host)]++);

  const auto own = static_cast<std::size_t>(self);
  const int own_size = size[static_cast<std::size_t>(hosts[own])];
  std::vector<Rank> watched;
  for (std::size_t other = 0; other < hosts.size(); ++other) {
    if (!watch_each_other(hosts[own], hosts[other], count)) continue;
    const int other_size = size[static_cast<std::size_t>(hosts[other])];
    if (place[other] == place[own] % other_size || place[own] == place[other] % own_size) {
      watched.push_back(static_cast<Rank>(other));
    }
  }
  return watched;
}

}  // namespace peal::transport
