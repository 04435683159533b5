#include "peal/launch/host_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::launch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(HostPlanTest, TheFirstHostsAreFilledFirst) {
  const std::vector<HostSlots> hosts = {{"a", 2}, {"b", 3}, {"c", 4}};
  EXPECT_THAT(plan_hosts(hosts, 4).blocks, ElementsAre(HostBlock{"a", 0, 2}, HostBlock{"b", 2, 2}));
  EXPECT_THAT(plan_hosts(hosts, 1).blocks, ElementsAre(HostBlock{"a", 0, 1}));
  EXPECT_THAT(plan_hosts(hosts, 9).blocks,
              ElementsAre(HostBlock{"a", 0, 2}, HostBlock{"b", 2, 3}, HostBlock{"c", 5, 4}));
}

TEST(HostPlanTest, WithoutHostsAllRanksAreOnLocalhost) {
  EXPECT_THAT(plan_hosts({}, 5).blocks, ElementsAre(HostBlock{"localhost", 0, 5}));
}

TEST(HostPlanTest, MoreRanksThanSlotsAreRejected) {
  const std::vector<HostSlots> hosts = {{"a", 2}, {"b", 1}};
  try {
    plan_hosts(hosts, 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.what(),
                HasSubstr("Requested more processes (4) than there are available slots (3)"));
  }
}

TEST(HostPlanTest, LocalAndCrossRanksFollowTheBlocks) {
  const std::vector<HostSlots> hosts = {{"a", 1}, {"b", 3}, {"c", 2}};
  const HostPlan plan = plan_hosts(hosts, 6);
  const std::vector<RankPlace> expected = {
      {"a", 0, 1, 0, 3},
      {"b", 0, 3, 1, 3},
      {"b", 1, 3, 0, 2},
      {"b", 2, 3, 0, 1},
      {"c", 0, 2, 2, 3},
      {"c", 1, 2, 1, 2},
  };
  for (Rank rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(place_of(plan, rank), expected[static_cast<std::size_t>(rank)]) << rank;
  }
}

TEST(HostPlanTest, TheRanksOfALocalRankCountTheirHosts) {
  for (const std::vector<HostSlots>& hosts : {std::vector<HostSlots>{{"a", 4}},
                                              {{"a", 1}, {"b", 1}, {"c", 1}},
                                              {{"a", 3}, {"b", 1}},
                                              {{"a", 1}, {"b", 4}, {"c", 2}, {"d", 4}}}) {
    int slots = 0;
    for (const HostSlots& host : hosts) slots += host.slots;
    for (int ranks = 1; ranks <= slots; ++ranks) {
      const HostPlan plan = plan_hosts(hosts, ranks);
      for (Rank a = 0; a < ranks; ++a) {
        const RankPlace place = place_of(plan, a);
        int before = 0;
        int all = 0;
        for (Rank b = 0; b < ranks; ++b) {
          if (place_of(plan, b).local_rank != place.local_rank) continue;
          ++all;
          if (b < a) ++before;
        }
        EXPECT_EQ(place.cross_size, all);
        EXPECT_EQ(place.cross_rank, before);
      }
    }
  }
}

}  // namespace
}  // namespace peal::launch
