#include "peal/kernels/watched_copy.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace peal::kernels {
namespace {

using std::chrono::nanoseconds;

/// Simulates a copy of `size` bytes into memory where ordinary stores take this long for a line.
/// Returns how many bytes were stored by ordinary stores.
Bytes simulate_copy(WatchedCopy& watched, Bytes size, int nanoseconds_a_line) {
  Bytes cached;
  for (Bytes left = size; left > 0_B;) {
    const WatchedCopy::Advice advice = watched.next(left);
    const bool is_cached = advice.stores == Stores::kCached;
    if (is_cached) cached += advice.size;
    const std::int64_t lines = advice.size / 64_B;
    watched.took(advice, nanoseconds(lines * (is_cached ? nanoseconds_a_line : 3)));
    left -= advice.size;
  }
  return cached;
}

/// Simulates this many copies, each of a millisecond: first with ordinary stores, and then past the
/// caches when the watched copy advises it.
WatchedCopy after_slow_copies(int copies) {
  WatchedCopy watched;
  for (int i = 0; i < copies; ++i) watched.took(watched.next(16_KiB), nanoseconds(1'000'000));
  return watched;
}

/// Neighbouring bytes all differ.
std::vector<std::byte> bytes_of(Bytes size) {
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 1; i <= static_cast<std::uint64_t>(size.value); ++i) {
    bytes.push_back(static_cast<std::byte>(i * 0x9E3779B97F4A7C15u >> 56));
  }
  return bytes;
}

/// Copies to an unaligned address. Returns the target, with 17 bytes before and after it.
std::vector<std::byte> copied(WatchedCopy& watched, const std::vector<std::byte>& from) {
  std::vector<std::byte> to(17 + from.size() + 17, std::byte{0xEE});
  watched(from.data(), to.data() + 17, Bytes(std::ssize(from)));
  return to;
}

TEST(WatchedCopyTest, CopiesExactlyTheRequestedBytesInEveryState) {
  struct CopyCase {
    int slow_copies;
    Stores stores;
    Bytes at_once;
  };
  for (const auto& [slow_copies, stores, at_once] :
       {CopyCase{0, Stores::kCached, 1_MiB},
        CopyCase{1, Stores::kCached, 16_KiB},
        CopyCase{2, Stores::kStreaming, 1_MiB},
        CopyCase{2 + 64, Stores::kCached, 16_KiB}}) {  // it tries again
    const WatchedCopy suspicious = after_slow_copies(slow_copies);
    ASSERT_EQ(suspicious.next(1_MiB).stores, stores);
    ASSERT_EQ(suspicious.next(1_MiB).size, at_once);
    EXPECT_EQ(suspicious.next(3_B).size, 3_B);
    for (const Bytes size : {16_KiB - 1_B, 16_KiB, 40_KiB + 3_B, 1_MiB}) {
      const std::vector<std::byte> from = bytes_of(size);
      std::vector<std::byte> expected(17, std::byte{0xEE});
      expected.insert(expected.end(), from.begin(), from.end());
      expected.resize(expected.size() + 17, std::byte{0xEE});
      WatchedCopy watched = suspicious;
      for (int i = 0; i < 4; ++i) {  // the fourth copy is always measured
        EXPECT_EQ(copied(watched, from), expected) << slow_copies << " slow, " << size.value;
      }
    }
  }
}

TEST(WatchedCopyTest, CopiesPastTheCachesCountTowardTheNextTrial) {
  WatchedCopy watched = after_slow_copies(2 + 63);
  ASSERT_EQ(watched.next(1_MiB).stores, Stores::kStreaming);
  copied(watched, bytes_of(40_KiB));
  EXPECT_EQ(watched.next(1_MiB).stores, Stores::kCached);
}

TEST(WatchedCopyTest, NearRanksUseOrdinaryStores) {
  WatchedCopy watched;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(simulate_copy(watched, 1_MiB, 3), 1_MiB);
}

TEST(WatchedCopyTest, FarRanksStorePastTheCachesAndRarelyTryOrdinaryStores) {
  WatchedCopy watched;
  simulate_copy(watched, 1_MiB, 28);
  Bytes cached;
  for (int i = 0; i < 10'000; ++i) cached += simulate_copy(watched, 1_MiB, 28);
  EXPECT_LT(cached, 10'000_MiB / 1000);
  EXPECT_GT(cached, 0_B);
}

TEST(WatchedCopyTest, ReturnsToOrdinaryStoresWhenRanksBecomeNear) {
  WatchedCopy watched;
  for (int i = 0; i < 10'000; ++i) simulate_copy(watched, 1_MiB, 28);
  int copies = 0;
  while (simulate_copy(watched, 1_MiB, 3) < 1_MiB) ASSERT_LT(++copies, 10'000);
  EXPECT_EQ(simulate_copy(watched, 1_MiB, 3), 1_MiB);
}

TEST(WatchedCopyTest, OneInterruptionChangesNothing) {
  WatchedCopy watched;
  for (int i = 0; i < 100; ++i) {
    simulate_copy(watched, 64_KiB, 100);
    EXPECT_EQ(simulate_copy(watched, 64_KiB, 2), 64_KiB);
  }
}

TEST(WatchedCopyTest, SmallCopiesAreNotMeasured) {
  WatchedCopy watched;
  for (int i = 0; i < 100; ++i) simulate_copy(watched, 8_KiB, 100);
  EXPECT_EQ(simulate_copy(watched, 64_KiB, 2), 64_KiB);
}

}  // namespace
}  // namespace peal::kernels
