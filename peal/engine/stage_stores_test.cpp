#include "peal/engine/stage_stores.h"

#include <gtest/gtest.h>

namespace peal::engine {
namespace {

using kernels::Stores;
using std::chrono::nanoseconds;

/// Copies so many bytes over a memory where a line takes so long by ordinary stores; returns how
/// many were stored by them.
Bytes copy(StageStores& stores, Bytes size, int nanoseconds_a_line) {
  Bytes cached;
  for (Bytes left = size; left > 0_B;) {
    const StageStores::Advice advice = stores.next(left);
    const bool is_cached = advice.stores == Stores::kCached;
    if (is_cached) cached += advice.size;
    const std::int64_t lines = advice.size / 64_B;
    stores.took(advice, nanoseconds(lines * (is_cached ? nanoseconds_a_line : 3)));
    left -= advice.size;
  }
  return cached;
}

TEST(StageStoresTest, NearRanksStoreTheOrdinaryWay) {
  StageStores stores;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(copy(stores, 1_MiB, 3), 1_MiB);
}

TEST(StageStoresTest, FarRanksStorePastTheCachesAndSeldomTryAnythingElse) {
  StageStores stores;
  copy(stores, 1_MiB, 28);
  Bytes cached;
  for (int i = 0; i < 10'000; ++i) cached += copy(stores, 1_MiB, 28);
  EXPECT_LT(cached, 10'000_MiB / 1000);
  EXPECT_GT(cached, 0_B);
}

TEST(StageStoresTest, RanksThatComeNearAreNoticed) {
  StageStores stores;
  for (int i = 0; i < 10'000; ++i) copy(stores, 1_MiB, 28);
  int copies = 0;
  while (copy(stores, 1_MiB, 3) < 1_MiB) ASSERT_LT(++copies, 10'000);
  EXPECT_EQ(copy(stores, 1_MiB, 3), 1_MiB);
}

TEST(StageStoresTest, OneInterruptionChangesNothing) {
  StageStores stores;
  for (int i = 0; i < 100; ++i) {
    copy(stores, 64_KiB, 100);
    EXPECT_EQ(copy(stores, 64_KiB, 2), 64_KiB);
  }
}

TEST(StageStoresTest, SmallCopiesAreNotJudged) {
  StageStores stores;
  for (int i = 0; i < 100; ++i) copy(stores, 8_KiB, 100);
  EXPECT_EQ(copy(stores, 64_KiB, 2), 64_KiB);
}

}  // namespace
}  // namespace peal::engine
