// Which ranks watch each other.
#include "peal/transport/liveness/watch.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::transport {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// `sizes[h]` ranks on host h, either as neighbours or in turn.
enum class Order { kNeighbours, kDealt };

std::vector<int> hosts_of(const std::vector<int>& sizes, Order order) {
  std::vector<int> hosts;
  std::vector<int> left = sizes;
  while (std::ranges::any_of(left, [](int n) { return n > 0; })) {
    for (std::size_t host = 0; host < left.size(); ++host) {
      const int take = order == Order::kNeighbours ? left[host] : std::min(left[host], 1);
      hosts.insert(hosts.end(), static_cast<std::size_t>(take), static_cast<int>(host));
      left[host] -= take;
    }
  }
  return hosts;
}

TEST(WatchTest, RanksOfOneHostNeedNoBeats) {
  EXPECT_THAT(watched_by(0, hosts_of({4}, Order::kNeighbours)), IsEmpty());
}

TEST(WatchTest, TwoHostsNeedOneLineForEachRank) {
  const std::vector<int> hosts = hosts_of({2, 2}, Order::kNeighbours);
  EXPECT_THAT(watched_by(0, hosts), ElementsAre(2));
  EXPECT_THAT(watched_by(1, hosts), ElementsAre(3));
}

TEST(WatchTest, WatchingIsMutualAndCoversEveryRankAndPairOfHosts) {
  for (const Order order : {Order::kNeighbours, Order::kDealt}) {
    for (const std::vector<int>& sizes :
         {std::vector{1, 1}, {4, 2}, {3, 5}, {1, 7, 2}, {2, 2, 2, 2}, {5, 1, 1, 3}}) {
      const std::vector<int> hosts = hosts_of(sizes, order);
      for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
        std::set<int> seen;
        for (const Rank other : watched_by(static_cast<Rank>(rank), hosts)) {
          EXPECT_THAT(watched_by(other, hosts), ::testing::Contains(static_cast<Rank>(rank)));
          seen.insert(hosts[static_cast<std::size_t>(other)]);
        }
        EXPECT_EQ(seen.size(), sizes.size() - 1) << "rank " << rank;
      }
    }
  }
}

TEST(WatchTest, InALargeJobARankWatchesALimitedNumber) {
  constexpr int kHosts = 1000;
  const std::vector<int> hosts = hosts_of(std::vector<int>(kHosts, 1), Order::kNeighbours);
  for (Rank rank = 0; rank < kHosts; ++rank) {
    EXPECT_EQ(watched_by(rank, hosts).size(), static_cast<std::size_t>(kWatchedHosts));
  }
  const std::vector<Rank> watched = watched_by(0, hosts);
  EXPECT_THAT(watched, ::testing::IsSupersetOf({1, 16, 984, 999}));
}

}  // namespace
}  // namespace peal::transport
