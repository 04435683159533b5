#include "peal/train/data/epoch_cursor.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/train/data/permutation.h"

namespace peal::train::data {
namespace {

using testing::ElementsAre;

EpochCursor cursor_of(std::size_t size,
                      Rank rank,
                      int ranks,
                      Remainder remainder = Remainder::kPad) {
  return EpochCursor({.size = size,
                      .rank = rank,
                      .ranks = ranks,
                      .remainder = remainder,
                      .seed = 3,
                      .order = permutation});
}

std::vector<std::size_t> take_rest(EpochCursor& cursor, std::size_t batch_size) {
  std::vector<std::size_t> taken;
  while (const auto batch = cursor.next(batch_size)) {
    taken.insert(taken.end(), batch->begin(), batch->end());
  }
  return taken;
}

TEST(EpochCursorTest, ACursorWithoutAnOrderIsAnError) {
  try {
    EpochCursor({.size = 4});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  }
}

/// How often the ranks took each sample.
using Counts = std::map<std::size_t, int>;

/// One stage of an epoch: `ranks` ranks take `batches` batches each from `position` on, as far as
/// samples are left. Returns the position after that, on which all ranks agree.
std::size_t run_stage(const EpochOptions& options,
                      std::size_t position,
                      std::size_t batch_size,
                      std::size_t batches,
                      Counts& counts) {
  std::vector<std::size_t> positions;
  for (Rank rank = 0; rank < options.ranks; ++rank) {
    EpochOptions mine = options;
    mine.rank = rank;
    EpochCursor cursor(mine);
    cursor.set_epoch(7);
    cursor.seek(position);
    cursor.restart();
    for (std::size_t i = 0; i < batches; ++i) {
      const auto batch = cursor.next(batch_size);
      if (!batch) break;
      for (const std::size_t sample : *batch) counts[sample] += 1;
    }
    positions.push_back(cursor.position());
  }
  EXPECT_THAT(positions, testing::Each(positions[0])) << options.ranks << " ranks";
  return positions[0];
}

constexpr std::size_t kAll = 1000;  // batches, more than any epoch here has

/// Checks the samples that were taken in an epoch of two stages.
void expect_shared_out(const Counts& counts, const EpochOptions& last, const std::string& where) {
  std::size_t total = 0;
  for (const auto& [sample, count] : counts) total += static_cast<std::size_t>(count);
  const auto ranks = static_cast<std::size_t>(last.ranks);
  switch (last.remainder) {
    case Remainder::kUneven:
      EXPECT_EQ(counts.size(), last.size) << where << ": lost";
      EXPECT_EQ(total, last.size) << where << ": repeated";
      return;
    case Remainder::kPad:
      EXPECT_EQ(counts.size(), last.size) << where << ": lost";
      EXPECT_LT(total, last.size + ranks) << where << ": repeated more than padding";
      return;
    case Remainder::kDrop:
      EXPECT_EQ(total, counts.size()) << where << ": repeated";
      EXPECT_GT(total + ranks, last.size) << where << ": lost more than a round";
      return;
  }
}

TEST(EpochCursorTest, AnotherNumberOfRanksContinuesWithoutALostOrRepeatedSample) {
  for (const auto remainder : {Remainder::kPad, Remainder::kDrop, Remainder::kUneven}) {
    for (const std::size_t size : {0u, 1u, 2u, 7u, 12u, 31u}) {
      for (int before = 1; before <= 4; ++before) {
        for (int after = 1; after <= 4; ++after) {
          for (std::size_t batch_size = 1; batch_size <= 4; ++batch_size) {
            for (std::size_t batches = 0; batches * batch_size * before < size; ++batches) {
              EpochOptions options = {.size = size, .remainder = remainder, .order = permutation};
              Counts counts;
              options.ranks = before;
              const std::size_t cut = run_stage(options, 0, batch_size, batches, counts);
              options.ranks = after;
              EXPECT_EQ(run_stage(options, cut, 5 - batch_size, kAll, counts), size);
              expect_shared_out(counts,
                                options,
                                std::to_string(size) + " samples, " + std::to_string(before) +
                                    " then " + std::to_string(after) + " ranks, cut at " +
                                    std::to_string(cut));
            }
          }
        }
      }
    }
  }
}

TEST(EpochCursorTest, AnEpochThatIsInterruptedManyTimesTakesEverySampleOnce) {
  constexpr std::size_t kSize = 97;
  for (int first = 1; first <= 5; ++first) {
    EpochOptions options = {.size = kSize, .remainder = Remainder::kUneven, .order = permutation};
    Counts counts;
    std::size_t position = 0;
    for (int stage = 0; position < kSize; ++stage) {
      options.ranks = 1 + (first + 3 * stage) % 5;
      const auto batch_size = static_cast<std::size_t>(1 + stage % 3);
      position = run_stage(options, position, batch_size, 2, counts);
    }
    expect_shared_out(counts, options, "first " + std::to_string(first));
  }
}

TEST(EpochCursorTest, RanksAgreeOnThePositionAfterEveryBatchOfAnUnevenEpoch) {
  for (std::size_t size = 0; size <= 20; ++size) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      for (std::size_t batch_size = 1; batch_size <= 4; ++batch_size) {
        const EpochOptions options = {
            .size = size, .ranks = ranks, .remainder = Remainder::kUneven, .order = permutation};
        for (std::size_t batches = 0; batches <= size; ++batches) {
          Counts counts;
          const std::size_t position = run_stage(options, 0, batch_size, batches, counts);
          if (batches > 0) {
            EXPECT_EQ(position, counts.size()) << size << " on " << ranks << " by " << batch_size;
          }
        }
      }
    }
  }
}

TEST(EpochCursorTest, TheEpochAdvancesWhenARestartFollowsNext) {
  EpochCursor cursor = cursor_of(10, 0, 2);
  cursor.restart();  // the first loop begins
  EXPECT_EQ(cursor.epoch(), 0u);
  const auto first = take_rest(cursor, 4);
  cursor.restart();
  EXPECT_EQ(cursor.epoch(), 1u);
  cursor.restart();  // no sample was taken
  EXPECT_EQ(cursor.epoch(), 1u);
  EXPECT_NE(take_rest(cursor, 4), first);
  cursor.set_epoch(0);
  cursor.restart();
  EXPECT_EQ(take_rest(cursor, 4), first);
}

TEST(EpochCursorTest, ALoopThatStopsInTheMiddleIsFollowedByTheNextEpochFromItsBeginning) {
  EpochCursor cursor = cursor_of(10, 0, 2);
  cursor.restart();
  cursor.next(2);
  cursor.restart();
  EXPECT_EQ(cursor.epoch(), 1u);
  EXPECT_EQ(cursor.position(), 0u);
  EXPECT_EQ(cursor.remaining(), 5u);
}

TEST(EpochCursorTest, ARankWithoutSamplesAdvancesLikeTheOthers) {
  EpochCursor cursor = cursor_of(1, 1, 2, Remainder::kUneven);
  cursor.restart();
  EXPECT_EQ(cursor.next(4), std::nullopt);
  cursor.restart();
  EXPECT_EQ(cursor.epoch(), 1u);
}

TEST(EpochCursorTest, APositionSurvivesRestartAndSetEpochOfItsEpoch) {
  EpochCursor cursor = cursor_of(10, 0, 2);
  cursor.set_epoch(3);
  cursor.seek(4);
  cursor.set_epoch(3);
  cursor.restart();
  EXPECT_EQ(cursor.epoch(), 3u);
  EXPECT_EQ(cursor.position(), 4u);
  EXPECT_EQ(take_rest(cursor, 4).size(), 3u);
  cursor.set_epoch(3);  // in use, so the epoch begins again
  EXPECT_EQ(cursor.position(), 0u);
  cursor.seek(4);
  cursor.set_epoch(4);
  EXPECT_EQ(cursor.position(), 0u);
}

TEST(EpochCursorTest, AnEpochContinuedAtItsEndIsEmptyAndTheNextOneIsWhole) {
  EpochCursor cursor = cursor_of(10, 0, 2);
  cursor.seek(10);
  cursor.restart();
  EXPECT_EQ(cursor.next(1), std::nullopt);
  cursor.restart();
  EXPECT_EQ(cursor.epoch(), 1u);
  EXPECT_EQ(cursor.remaining(), 5u);
}

TEST(EpochCursorTest, UsedSamplesCountWhenTheyAreUsed) {
  EpochCursor cursor = cursor_of(20, 1, 2);
  cursor.count_uses_after_restart();
  cursor.restart();
  for (int i = 0; i < 3; ++i) cursor.next(4);  // 4, 4 and the last 2
  EXPECT_EQ(cursor.position(), 0u);
  EXPECT_EQ(cursor.remaining(), 10u);
  cursor.use();
  EXPECT_EQ(cursor.position(), 8u);
  EXPECT_EQ(cursor.remaining(), 6u);
  cursor.use();
  cursor.use();
  EXPECT_EQ(cursor.position(), 20u);
  EXPECT_THROW(cursor.use(), Error);
  cursor.restart();  // counts takes again
  cursor.next(4);
  EXPECT_EQ(cursor.position(), 8u);
  EXPECT_THROW(cursor.use(), Error);
}

TEST(EpochCursorTest, AnEpochIsOverWhenAllIsUsedEvenIfTheLoaderDroppedItsLastBatch) {
  EpochCursor cursor = cursor_of(21, 0, 2, Remainder::kDrop);
  cursor.count_uses_after_restart();
  cursor.restart();
  for (int i = 0; i < 3; ++i) cursor.next(4);
  cursor.use();
  cursor.use();
  EXPECT_EQ(cursor.position(), 16u);
  cursor.use_all();
  EXPECT_EQ(cursor.position(), 21u);
  EXPECT_EQ(cursor.remaining(), 0u);
}

TEST(EpochCursorTest, AClosedEpochGivesNoSamplesUntilTheNext) {
  EpochCursor cursor = cursor_of(10, 0, 2);
  cursor.next(2);
  cursor.close();
  EXPECT_EQ(cursor.next(2), std::nullopt);
  EXPECT_EQ(cursor.position(), 4u);
  cursor.restart();
  EXPECT_TRUE(cursor.next(2).has_value());
}

TEST(EpochCursorTest, RestartTakesANewSize) {
  EpochCursor cursor = cursor_of(10, 0, 2);
  cursor.restart(4);
  EXPECT_EQ(take_rest(cursor, 8).size(), 2u);
  EXPECT_EQ(cursor.position(), 4u);
}

TEST(EpochCursorTest, AnOrderIsComputedOnlyForEpochsInUse) {
  int computed = 0;
  EpochCursor cursor({.size = 4, .order = [&](std::size_t size, std::uint64_t, std::uint64_t) {
                        ++computed;
                        std::vector<std::size_t> order(size);
                        std::iota(order.begin(), order.end(), std::size_t{0});
                        return order;
                      }});
  cursor.set_epoch(2);
  cursor.seek(1);
  cursor.restart();
  EXPECT_EQ(cursor.remaining(), 3u);
  EXPECT_EQ(computed, 0);
  EXPECT_THAT(take_rest(cursor, 2), ElementsAre(1, 2, 3));
  EXPECT_EQ(computed, 1);
}

TEST(EpochCursorTest, MisuseIsAUsageError) {
  EXPECT_THROW(cursor_of(10, 2, 2), Error);
  EXPECT_THROW(cursor_of(10, -1, 2), Error);
  EpochCursor cursor = cursor_of(10, 0, 2);
  EXPECT_THROW(cursor.seek(11), Error);
  cursor.seek(8);
  EXPECT_THROW(cursor.restart(4), Error);
  EpochCursor wrong({.size = 4, .order = [](std::size_t, std::uint64_t, std::uint64_t) {
                       return std::vector<std::size_t>{0, 1};
                     }});
  EXPECT_THROW(wrong.next(1), Error);
}

}  // namespace
}  // namespace peal::train::data
