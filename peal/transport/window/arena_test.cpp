#include "peal/transport/window/arena.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::transport {
namespace {

TEST(ArenaTest, AllocationsAreAlignedAndDoNotOverlap) {
  Arena arena(64_KiB);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
  for (const Bytes size : {1_B, 64_B, 65_B, 0_B, 1000_B, 4096_B}) {
    const std::uint64_t begin = arena.allocate(size);
    const std::uint64_t end = begin + static_cast<std::uint64_t>(std::max(size, 1_B).value);
    EXPECT_EQ(begin % Arena::kAlignment, 0u);
    EXPECT_LE(end, 64u << 10);
    for (const auto& [b, e] : taken) EXPECT_TRUE(end <= b || begin >= e);
    taken.emplace_back(begin, end);
  }
}

TEST(ArenaTest, PiecesFreedInAnyOrderMergeIntoOne) {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    Arena arena(256_B);
    std::vector<std::uint64_t> pieces;
    for (int i = 0; i < 4; ++i) pieces.push_back(arena.allocate(64_B));
    EXPECT_THROW(arena.allocate(0_B), Error);
    for (const int i : order) arena.deallocate(pieces[static_cast<std::size_t>(i)]);
    EXPECT_EQ(arena.allocate(256_B), 0u);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(ArenaTest, AGapIsReused) {
  Arena arena(4_KiB);
  arena.allocate(64_B);
  const std::uint64_t gap = arena.allocate(128_B);
  arena.allocate(64_B);
  arena.deallocate(gap);
  EXPECT_EQ(arena.allocate(100_B), gap);
}

TEST(ArenaTest, AllocateLastReturnsTheLastPlaceThatFits) {
  constexpr std::uint64_t kPage = 4096;
  Arena arena(64_KiB - 64_B);
  const std::uint64_t last = arena.allocate_last(4_KiB, kPage);
  EXPECT_EQ(last, 14 * kPage);  // the end of the arena is not the end of a page
  const std::uint64_t before = arena.allocate_last(5000_B, kPage);
  EXPECT_EQ(before, 12 * kPage);
  EXPECT_EQ(arena.allocate(1_KiB), 0u);
  arena.deallocate(last);
  EXPECT_EQ(arena.allocate_last(4_KiB, kPage), last);
  EXPECT_THROW(arena.allocate_last(12 * 4_KiB, kPage), Error);  // the first place is taken
  EXPECT_EQ(arena.allocate_last(11 * 4_KiB, kPage), kPage);
  EXPECT_EQ(arena.allocate(3_KiB), 1024u);
  EXPECT_THROW(arena.allocate_last(Bytes(-1), kPage), Error);
}

TEST(ArenaTest, AFullArenaReportsHowMuchIsInUse) {
  Arena arena(1_KiB);
  arena.allocate(512_B);
  try {
    arena.allocate(513_B);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResource);
    EXPECT_NE(error.message().find("513 bytes"), std::string_view::npos);
    EXPECT_NE(error.message().find("512 of 1024"), std::string_view::npos);
  }
  EXPECT_EQ(arena.allocate(512_B), 512u);
  EXPECT_THROW(arena.allocate(Bytes(-1)), Error);
}

TEST(ArenaTest, OnlyRangesInsideOneAllocationAreHeld) {
  Arena arena(4_KiB);
  const std::uint64_t first = arena.allocate(128_B);
  const std::uint64_t second = arena.allocate(128_B);
  ASSERT_EQ(second, first + 128);
  EXPECT_TRUE(arena.holds(first, 128_B));
  EXPECT_TRUE(arena.holds(first + 100, 28_B));
  EXPECT_TRUE(arena.holds(first + 127, 0_B));
  EXPECT_FALSE(arena.holds(first + 100, 29_B));  // would reach into the neighbour
  EXPECT_FALSE(arena.holds(second + 128, 0_B));
  EXPECT_FALSE(arena.holds(first, Bytes(-1)));
  arena.deallocate(first);
  EXPECT_FALSE(arena.holds(first, 1_B));
  EXPECT_TRUE(arena.holds(second, 1_B));
}

TEST(ArenaTest, FreeingAnUnknownOffsetIsIgnored) {
  Arena arena(4_KiB);
  const std::uint64_t piece = arena.allocate(128_B);
  arena.deallocate(piece + 64);
  EXPECT_TRUE(arena.holds(piece, 128_B));
  arena.deallocate(piece);
  arena.deallocate(piece);
  EXPECT_EQ(arena.allocate(4_KiB), 0u);
}

TEST(ArenaTest, ManyRandomAllocationsStayApartAndAllAreFreed) {
  constexpr unsigned kSeed = 11;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  Arena arena(1_MiB);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> live;
  for (int i = 0; i < 5000; ++i) {
    if (live.size() < 40 && random() % 2 == 0) {
      const std::uint64_t size = 1 + random() % 20'000;
      const std::uint64_t begin = arena.allocate(Bytes(static_cast<std::int64_t>(size)));
      for (const auto& [b, e] : live) ASSERT_TRUE(begin + size <= b || begin >= e);
      live.emplace_back(begin, begin + size);
    } else if (!live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      arena.deallocate(live.back().first);
      live.pop_back();
    }
  }
  for (const auto& [begin, end] : live) arena.deallocate(begin);
  EXPECT_EQ(arena.allocate(1_MiB), 0u);
}

}  // namespace
}  // namespace peal::transport
