#include "peal/transport/liveness/stopped_ranks.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::transport {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using State = Presence::State;

TEST(StoppedRanksTest, ARankCountsAsStoppedUntilALookFindsItRunning) {
  State state = State::kRunning;
  StoppedRanks ranks(
      {3, 5}, [&](Rank rank) { return Presence{.state = rank == 5 ? state : State::kRunning}; });
  EXPECT_THAT(ranks.look(), IsEmpty());
  state = State::kStopped;
  EXPECT_THAT(ranks.look(), ElementsAre(5));
  state = State::kEnded;
  EXPECT_THAT(ranks.look(), IsEmpty());
}

TEST(StoppedRanksTest, EachLookCoversAFewRanksAndAllInTurn) {
  std::vector<Rank> all(100);
  std::iota(all.begin(), all.end(), 0);
  int looks = 0;
  StoppedRanks ranks(all, [&](Rank rank) {
    ++looks;
    return Presence{.state = rank == 99 ? State::kStopped : State::kRunning};
  });
  int rounds = 1;
  while (ranks.look().empty()) ++rounds;
  EXPECT_EQ(rounds, 13);
  EXPECT_EQ(looks, 13 * 8);
}

TEST(StoppedRanksTest, WithoutOtherRanksNoneIsStopped) {
  StoppedRanks ranks({}, [](Rank) { return Presence{.state = State::kStopped}; });
  EXPECT_THAT(ranks.look(), IsEmpty());
}

}  // namespace
}  // namespace peal::transport
