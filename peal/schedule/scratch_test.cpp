#include "peal/schedule/scratch.h"

#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace peal::schedule {
namespace {

constexpr ScratchSize kSize{.ring = Bytes(640), .cell = Bytes(16), .cells = 4};

TEST(ScratchTest, TheFirstOperationsWaitForNobody) {
  Scratch scratch(kSize);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(scratch.place(Bytes(128)).free.counter, 0);
    scratch.end_turn(1);
  }
}

TEST(ScratchTest, NeighbouringOperationsHavePlacesOfTheirOwn) {
  Scratch scratch(kSize);
  EXPECT_EQ(scratch.place(Bytes(65)).offset, Bytes(0));
  scratch.end_turn(1);
  EXPECT_EQ(scratch.place(Bytes(1)).is_cell, true);
  scratch.end_turn(1);
  EXPECT_EQ(scratch.place(Bytes(20)).offset, Bytes(128));
}

TEST(ScratchTest, WhatDoesNotFitBeforeTheEndOfTheRingBeginsAnew) {
  Scratch scratch(kSize);
  for (const int expected : {0, 192, 384, 0}) {
    EXPECT_EQ(scratch.place(Bytes(192)).offset, Bytes(expected));
    scratch.end_turn(2);
  }
}

TEST(ScratchTest, ACellIsFreeOnceEverybodySignalsInTheTurnAfterTheLastThatHadIt) {
  Scratch scratch(kSize);
  for (int i = 0; i < 4; ++i) {
    scratch.place(Bytes(1));
    scratch.end_turn(10);
  }
  EXPECT_EQ(scratch.turn(), 4u);
  EXPECT_EQ(scratch.base(), 40);
  EXPECT_EQ(scratch.place(Bytes(1)).free.counter, 11);
}

TEST(ScratchTest, ATurnThatStagesNothingLeavesTheCellAsItWas) {
  Scratch scratch(kSize);
  scratch.place(Bytes(1));
  for (int i = 0; i < 8; ++i) scratch.end_turn(1);
  EXPECT_EQ(scratch.place(Bytes(1)).free.counter, 2);
}

/// Against a plain account of who had each byte last.
TEST(ScratchTest, WhoeverHadAByteBeforeIsWaitedForAndNeverTheOperationBefore) {
  std::mt19937 random(1);
  Scratch scratch(kSize);
  std::map<std::int64_t, std::int64_t> free_at;  // by byte of the ring
  std::int64_t last_base = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t size = 17 + static_cast<std::int64_t>(random() % 176);
    const Scratch::Place place = scratch.place(Bytes(size));
    ASSERT_LE(place.offset.value + size, kSize.ring.value);
    for (std::int64_t at = place.offset.value; at < place.offset.value + size; ++at) {
      ASSERT_GE(place.free.counter, free_at[at]);
    }
    // Reached by a signal of the turn before, at the latest: nobody waits for itself.
    ASSERT_LE(place.free.counter, i == 0 ? 0 : last_base + 1);
    last_base = scratch.base();
    scratch.end_turn(1 + random() % 3);
    for (std::int64_t at = place.offset.value; at < place.offset.value + size; ++at) {
      free_at[at] = scratch.base() + 1;
    }
  }
}

}  // namespace
}  // namespace peal::schedule
