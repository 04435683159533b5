#include "peal/kernels/watched_copy.h"

#include <gtest/gtest.h>

namespace peal::kernels {
namespace {

using std::chrono::nanoseconds;

/// As if it copied so many bytes into memory where a line takes so long by ordinary stores; returns
/// how many were stored by them.
Bytes pretend(WatchedCopy& watched, Bytes size, int nanoseconds_a_line) {
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

TEST(WatchedCopyTest, NearRanksStoreTheOrdinaryWay) {
  WatchedCopy watched;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(pretend(watched, 1_MiB, 3), 1_MiB);
}

TEST(WatchedCopyTest, FarRanksStorePastTheCachesAndSeldomTryAnythingElse) {
  WatchedCopy watched;
  pretend(watched, 1_MiB, 28);
  Bytes cached;
  for (int i = 0; i < 10'000; ++i) cached += pretend(watched, 1_MiB, 28);
  EXPECT_LT(cached, 10'000_MiB / 1000);
  EXPECT_GT(cached, 0_B);
}

TEST(WatchedCopyTest, RanksThatComeNearAreNoticed) {
  WatchedCopy watched;
  for (int i = 0; i < 10'000; ++i) pretend(watched, 1_MiB, 28);
  int copies = 0;
  while (pretend(watched, 1_MiB, 3) < 1_MiB) ASSERT_LT(++copies, 10'000);
  EXPECT_EQ(pretend(watched, 1_MiB, 3), 1_MiB);
}

TEST(WatchedCopyTest, OneInterruptionChangesNothing) {
  WatchedCopy watched;
  for (int i = 0; i < 100; ++i) {
    pretend(watched, 64_KiB, 100);
    EXPECT_EQ(pretend(watched, 64_KiB, 2), 64_KiB);
  }
}

TEST(WatchedCopyTest, SmallCopiesAreNotJudged) {
  WatchedCopy watched;
  for (int i = 0; i < 100; ++i) pretend(watched, 8_KiB, 100);
  EXPECT_EQ(pretend(watched, 64_KiB, 2), 64_KiB);
}

}  // namespace
}  // namespace peal::kernels
