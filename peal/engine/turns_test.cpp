// How ranks of one host synchronise by their counters, without a schedule.
#include "peal/engine/turns.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/transport/memory/memory.h"

namespace peal::engine {
namespace {

using schedule::Ranks;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

constexpr int kTurnRanks = 3;

class TurnsTest : public ::testing::Test {
 protected:
  TurnsTest() {
    transport::MemoryOptions options;
    options.stage = 8_KiB;
    transports_ = transport::make_memory_transports(kTurnRanks, options);
    for (Rank rank = 0; rank < kTurnRanks; ++rank) {
      const auto i = static_cast<std::size_t>(rank);
      turns_.push_back(
          std::make_unique<Turns>(rank, kTurnRanks, *transports_[i]->window(), [this](Rank peer) {
            checked_.push_back(peer);
          }));
    }
  }

  Turns& of(Rank rank) { return *turns_[static_cast<std::size_t>(rank)]; }

  static Fingerprint operation(std::uint64_t sequence, std::uint64_t detail = 7) {
    return {.sequence = sequence, .count = {}, .detail = detail};
  }
  void enter(Rank rank, const Fingerprint& fingerprint, std::uint64_t place = 0) {
    of(rank).enter(fingerprint, place, Compare::kChecks);
  }
  void enter_all(std::uint64_t sequence) {
    for (Rank rank = 0; rank < kTurnRanks; ++rank) enter(rank, operation(sequence));
  }

  std::vector<std::unique_ptr<transport::Transport>> transports_;
  std::vector<std::unique_ptr<Turns>> turns_;
  std::vector<Rank> checked_;
};

constexpr Ranks kOthersOfFirst{.first = 1, .count = 2};

TEST_F(TurnsTest, AWaitEndsWhenAllItsRanksHaveSignalled) {
  enter_all(1);
  EXPECT_FALSE(of(0).reached(kOthersOfFirst, 1));
  EXPECT_EQ(of(0).missing(kOthersOfFirst, 1).rank, 1);
  of(1).signal(1);
  EXPECT_FALSE(of(0).reached(kOthersOfFirst, 1));
  EXPECT_EQ(of(0).missing(kOthersOfFirst, 1).rank, 2);
  std::vector<Rank> missing;
  of(0).append_missing(kOthersOfFirst, 1, missing);
  EXPECT_THAT(missing, ElementsAre(2));
  of(2).signal(2);
  EXPECT_TRUE(of(0).reached(kOthersOfFirst, 1));
  EXPECT_FALSE(of(0).reached(kOthersOfFirst, 2)) << "only one rank has signalled so far";
}

TEST_F(TurnsTest, SignalsOfThePreviousOperationDoNotCount) {
  enter_all(1);
  for (Rank rank = 0; rank < kTurnRanks; ++rank) {
    of(rank).signal(3);
    of(rank).end(3);
  }
  enter_all(2);
  EXPECT_FALSE(of(0).reached(kOthersOfFirst, 1));
  of(1).signal(1);
  of(2).signal(1);
  EXPECT_TRUE(of(0).reached(kOthersOfFirst, 1));
}

TEST_F(TurnsTest, AnOperationWithoutSignalsIsNotATurn) {
  enter_all(1);
  of(0).end(0);
  enter(0, operation(2));
  enter(1, operation(2));
  of(1).signal(1);
  EXPECT_TRUE(of(0).reached({.first = 1}, 1));
}

TEST_F(TurnsTest, ARankThatMayBeInAnotherOperationIsCheckedOnce) {
  enter(0, operation(1, 7));
  enter(1, operation(1, 7));
  enter(2, operation(1, 8));
  of(1).signal(2);
  of(2).signal(2);
  EXPECT_TRUE(of(0).reached(kOthersOfFirst, 1));
  EXPECT_TRUE(of(0).reached(kOthersOfFirst, 2));
  EXPECT_THAT(checked_, ElementsAre(2));
}

TEST_F(TurnsTest, ChecksEveryRankIfEntriesAreCompared) {
  for (Rank rank = 0; rank < kTurnRanks; ++rank) of(rank).enter(operation(1), 0, Compare::kEntries);
  of(1).signal(1);
  of(2).signal(1);
  EXPECT_TRUE(of(0).reached(kOthersOfFirst, 1));
  EXPECT_THAT(checked_, ElementsAre(1, 2));
}

TEST_F(TurnsTest, ASignalPublishesThePlace) {
  enter(0, operation(1));
  enter(1, operation(1), 42);
  of(1).signal(1);
  EXPECT_TRUE(of(0).reached({.first = 1}, 1));
  EXPECT_THAT(of(0).place_of(1), Optional(std::uint64_t{42}));
}

TEST_F(TurnsTest, APlaceInAnotherOperationIsNotReturned) {
  enter(0, operation(1, 7));
  enter(1, operation(1, 8), 42);
  of(1).signal(1);
  EXPECT_EQ(of(0).place_of(1), std::nullopt);
}

/// Rank 0 stages repeatedly, and rank 1 stays in the first operation. Before rank 0 may reuse the
/// first staging place, it must wait until rank 1 has left that operation.
TEST_F(TurnsTest, AWaitForZeroWaitsForARankThatMayStillReadThePlace) {
  constexpr Bytes kStage = 2_KiB;
  constexpr Ranks kOther{.first = 1};
  BufferAddresses addresses(0, kTurnRanks);
  std::vector<std::byte*> staged;
  const auto free_after = [&](std::uint64_t operations) {
    for (std::uint64_t k = staged.size() + 1; k <= operations; ++k) {
      enter(0, operation(k));
      of(0).place_stage(kStage, addresses);
      staged.push_back(
          addresses.address({BufferAddresses::base_of(schedule::Space::kStage, 0), Elements(0)}));
      if (!of(0).reached(kOther, 0)) return false;
      of(0).signal(1);
      of(0).end(1);
    }
    return true;
  };
  enter(1, operation(1));
  EXPECT_FALSE(free_after(100)) << "the ring is much smaller";
  EXPECT_GE(staged.size(), 3u) << "an operation never shares a place with the one before";
  // Rank 1 leaves the operations one by one. Its signal in the next operation shows it.
  for (std::uint64_t k = 1; k <= staged.size() && !of(0).reached(kOther, 0); ++k) {
    if (k > 1) enter(1, operation(k));
    of(1).signal(1);
    of(1).end(1);
  }
  EXPECT_TRUE(of(0).reached(kOther, 0));
  EXPECT_THAT(checked_, IsEmpty()) << "a wait for 0 compares no operations";
}

}  // namespace
}  // namespace peal::engine
