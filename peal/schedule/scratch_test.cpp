#include "peal/schedule/scratch.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace peal::schedule {
namespace {

constexpr ScratchSize kSize{.ring = Bytes(640), .cell = Bytes(16), .cells = 4};

TEST(ScratchTest, TheFirstOperationsDoNotWait) {
  Scratch scratch(kSize);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(scratch.reserve(Bytes(128)).free.counter, 0);
    scratch.end_turn(1);
  }
}

TEST(ScratchTest, ConsecutiveOperationsHaveDifferentPlaces) {
  Scratch scratch(kSize);
  EXPECT_EQ(scratch.reserve(Bytes(65)).offset, Bytes(0));
  scratch.end_turn(1);
  EXPECT_EQ(scratch.reserve(Bytes(1)).is_cell, true);
  scratch.end_turn(1);
  EXPECT_EQ(scratch.reserve(Bytes(20)).offset, Bytes(128));
}

TEST(ScratchTest, APlaceThatDoesNotFitBeforeTheEndOfTheRingMovesToItsBeginning) {
  Scratch scratch(kSize);
  for (const int expected : {0, 192, 384, 0}) {
    EXPECT_EQ(scratch.reserve(Bytes(192)).offset, Bytes(expected));
    scratch.end_turn(2);
  }
}

TEST(ScratchTest, ABankIsFreeOnceAllRanksSignalInTheTurnAfterItsLastUse) {
  Scratch scratch(kSize);
  for (int i = 0; i < 4; ++i) {
    scratch.reserve(Bytes(1));
    scratch.end_turn(10);
  }
  EXPECT_EQ(scratch.turn(), 4u);
  EXPECT_EQ(scratch.base(), 40);
  // The turns 0 and 1 are one bank, the turns 2 and 3 the other.
  EXPECT_EQ(scratch.reserve(Bytes(1)).free.turn, 2u);
  EXPECT_EQ(scratch.reserve(Bytes(1)).free.counter, 21);
}

TEST(ScratchTest, ARankThatRunsAheadWaitsOncePerBank) {
  Scratch scratch(kSize);
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 12; ++i) {
    waits.push_back(scratch.reserve(Bytes(1)).free.counter);
    scratch.end_turn(1);
  }
  EXPECT_EQ(waits, (std::vector<std::int64_t>{0, 0, 0, 0, 3, 3, 5, 5, 7, 7, 9, 9}));
}

/// Compares with a plain record, with turns between that stage in the ring or stage nothing.
TEST(ScratchTest, WaitsForEarlierUsersOfTheCell) {
  std::mt19937 random(2);
  Scratch scratch(kSize);
  std::map<std::uint64_t, std::int64_t> free_at;  // by cell
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t cell = scratch.turn() % 4;
    const bool takes = random() % 3 > 0;
    if (takes) {
      const Scratch::Reservation place = scratch.reserve(Bytes(1 + random() % 16));
      ASSERT_TRUE(place.is_cell);
      ASSERT_GE(place.free.counter, free_at[cell]);
      ASSERT_LE(place.free.counter, scratch.base());  // only of turns that have ended
      ASSERT_LE(place.free.turn, scratch.turn());
    } else if (random() % 2 == 0) {
      scratch.reserve(Bytes(64));
    }
    scratch.end_turn(1 + static_cast<std::int64_t>(random() % 3));
    if (takes) free_at[cell] = scratch.base() + 1;
  }
}

TEST(ScratchTest, ATurnWithoutStagingDoesNotUseItsCell) {
  Scratch scratch(kSize);
  scratch.reserve(Bytes(1));
  for (int i = 0; i < 8; ++i) scratch.end_turn(1);
  EXPECT_EQ(scratch.reserve(Bytes(1)).free.counter, 2);
}

/// Compares with a plain record of the last user of each grain. Two places never share a grain.
void check_against_account(const ScratchSize& with, std::int64_t rarely_as_large_as) {
  constexpr std::int64_t kGrain = Scratch::kGrain.value;
  std::mt19937 random(1);
  Scratch scratch(with);
  std::map<std::int64_t, std::int64_t> free_at;  // by where the grain begins
  std::int64_t last_base = 0;
  for (int i = 0; i < 2000; ++i) {
    std::int64_t size = 17 + static_cast<std::int64_t>(random() % 176);
    if (random() % 100 == 0) {
      size = 17 + static_cast<std::int64_t>(random()) % rarely_as_large_as;
    }
    const Scratch::Reservation place = scratch.reserve(Bytes(size));
    ASSERT_LE(place.offset.value + size, with.ring.value);
    for (std::int64_t at = place.offset.value; at < place.offset.value + size; at += kGrain) {
      ASSERT_GE(place.free.counter, free_at[at]);
    }
    // A signal of the previous turn reaches it: no rank waits for its own turn.
    ASSERT_LE(place.free.counter, i == 0 ? 0 : last_base + 1);
    last_base = scratch.base();
    scratch.end_turn(1 + random() % 3);
    for (std::int64_t at = place.offset.value; at < place.offset.value + size; at += kGrain) {
      free_at[at] = scratch.base() + 1;
    }
  }
}

TEST(ScratchTest, WaitsForTheLastUsersOfAPlaceAndNotForThePreviousOperation) {
  check_against_account(kSize, 176);
}

/// The eighths of some rings are not whole grains; some laps grow several times.
TEST(ScratchTest, WaitsForTheLastUsersWhileTheLapGrows) {
  for (const std::int64_t grains : {10, 11, 1'000, 3'001, 49'152}) {
    SCOPED_TRACE(grains);
    const ScratchSize size{.ring = Scratch::kGrain * grains, .cell = Bytes(16), .cells = 4};
    check_against_account(size, Scratch(size).limit().value - 16);
  }
}

TEST(ScratchTest, SmallOperationsUseOnlyAPartOfTheRing) {
  constexpr std::int64_t kRing = 3 << 20;
  Scratch scratch({.ring = Bytes(kRing), .cell = Bytes(16), .cells = 4});
  const auto used = [&](std::int64_t stage) {
    std::int64_t most = 0;
    for (int i = 0; i < 10'000; ++i) {
      most = std::max(most, scratch.reserve(Bytes(stage)).offset.value + stage);
      scratch.end_turn(1);
    }
    return most;
  };
  EXPECT_LE(used(64), 2 * Scratch::kPlaces * 64);
  EXPECT_LE(used(4096), 2 * Scratch::kPlaces * 4096);
  EXPECT_EQ(used(kRing / 3), kRing);
}

}  // namespace
}  // namespace peal::schedule
