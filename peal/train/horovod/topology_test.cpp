#include "peal/train/horovod/topology.h"

#include <vector>

#include <gtest/gtest.h>

namespace peal::hvd {
namespace {

Place at(const std::string& host) { return {.host = host}; }

void expect_topology(const std::vector<Place>& places, Rank rank, const Topology& wanted) {
  const Topology found = topology_of(places, rank);
  EXPECT_EQ(found, wanted) << "rank " << rank << ": local " << found.local_rank << " of "
                           << found.local_size << ", cross " << found.cross_rank << " of "
                           << found.cross_size;
}

TEST(Topology, OfOneHostHasAllRanksAsLocalRanks) {
  const std::vector<Place> places = {at("a"), at("a")};
  expect_topology(places, 0, {0, 2, 0, 1, true});
  expect_topology(places, 1, {1, 2, 0, 1, true});
}

TEST(Topology, OfHostsWithDifferentSlotsCrossesOnlyHostsThatHaveTheLocalRank) {
  const std::vector<Place> places = {at("a"), at("a"), at("b")};
  expect_topology(places, 0, {0, 2, 0, 2, false});
  expect_topology(places, 1, {1, 2, 0, 1, false});
  expect_topology(places, 2, {0, 1, 1, 2, false});
}

TEST(Topology, TakesTheNumbersOfTheLauncher) {
  const Place first{.host = "a", .local_rank = 0, .local_size = 1};
  const Place second{
      .host = "a", .local_rank = 0, .local_size = 1, .cross_rank = 5, .cross_size = 6};
  expect_topology({first, second}, 0, {0, 1, 0, 2, true});
  expect_topology({first, second}, 1, {0, 1, 5, 6, true});
}

TEST(Place, IsTheSameAfterTheWayThroughAText) {
  const Place place{
      .host = "a b", .local_rank = 1, .local_size = 2, .cross_rank = 3, .cross_size = 4};
  EXPECT_EQ(place_from(to_text(place)), place);
  EXPECT_EQ(place_from(to_text(at("c"))), at("c"));
}

}  // namespace
}  // namespace peal::hvd
