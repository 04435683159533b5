#include "peal/launch/elastic/assign_ranks.h"

#include <ostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/launch/elastic/testing/test_job.h"

namespace peal::launch::elastic {
namespace {

using ::testing::ElementsAre;

/// The host names and slots of the ranks, in their order.
struct Placed {
  std::string where;
  int local_rank, local_size, cross_rank, cross_size;
  friend bool operator==(const Placed&, const Placed&) = default;
  friend void PrintTo(const Placed& p, std::ostream* out) {
    *out << p.where << " local " << p.local_rank << "/" << p.local_size << " cross " << p.cross_rank
         << "/" << p.cross_size;
  }
};

std::vector<Placed> places(const State& state, const std::vector<int>& workers) {
  std::vector<Placed> placed;
  Rank rank = 0;
  for (const Member& member : assign_ranks(state, workers)) {
    const auto& place = member.place;
    EXPECT_EQ(place.rank, rank++);
    EXPECT_EQ(place.size, std::ssize(workers));
    EXPECT_EQ(place.round, state.round + 1);
    placed.push_back({name_of(state.workers[static_cast<std::size_t>(member.worker)]),
                      place.local_rank,
                      place.local_size,
                      place.cross_rank,
                      place.cross_size});
  }
  return placed;
}

TEST(AssignRanksTest, RanksFollowTheAgeOfTheHostsAndTheirSlots) {
  TestJob job({{"a", 2}, {"b", 1}});
  job.act();
  EXPECT_THAT(
      places(job.state, {0, 1, 2}),
      ElementsAre(
          Placed{"a[0]", 0, 2, 0, 2}, Placed{"a[1]", 1, 2, 0, 1}, Placed{"b[0]", 0, 1, 1, 2}));
}

TEST(AssignRanksTest, ASurvivorIsRank0AlthoughANewWorkerIsOnAnOlderHost) {
  TestJob job({{"a", 1}, {"b", 2}});
  job.train();
  job.fail(0);
  job.fail(1);
  const int on_a = worker_started(job.state, job.now, "a", 0);
  const int on_b = worker_started(job.state, job.now, "b", 0);
  EXPECT_THAT(places(job.state, {2, on_a, on_b}),
              ElementsAre(Placed{"b[1]", 1, 2, 0, 1},  // the local rank counts slots
                          Placed{"b[0]", 0, 2, 0, 2},
                          Placed{"a[0]", 0, 1, 1, 2}));
}

TEST(AssignRanksTest, ALocalRankIsBelowTheLocalSizeWhenASlotIsEmpty) {
  TestJob job({{"a", 3}});
  job.train();
  job.fail(1);
  EXPECT_THAT(places(job.state, {0, 2}),
              ElementsAre(Placed{"a[0]", 0, 2, 0, 1}, Placed{"a[2]", 1, 2, 0, 1}));
}

TEST(HostsFoundTest, AHostThatReturnsIsTheYoungestAndKeepsItsFailures) {
  State state;
  hosts_found(state, two_hosts());
  state.hosts[0].failures = 3;
  hosts_found(state, {{"b", 2}});
  hosts_found(state, {{"a", 4}, {"b", 1}});
  ASSERT_EQ(state.hosts.size(), 2u);
  EXPECT_EQ(state.hosts[0].name, "b");
  EXPECT_EQ(state.hosts[0].slots, 1);
  EXPECT_EQ(state.hosts[1].name, "a");
  EXPECT_EQ(state.hosts[1].slots, 4);
  EXPECT_EQ(state.hosts[1].failures, 3);
}

}  // namespace
}  // namespace peal::launch::elastic
