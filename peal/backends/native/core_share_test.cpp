#include "peal/backends/native/core_share.h"

#include <gtest/gtest.h>

namespace peal::native {
namespace {

using std::chrono::milliseconds;
using Finding = CoreShare::Finding;

/// The judgement after `passed`, in which this thread ran for `own` and the whole process for
/// `all`.
Finding judged(milliseconds passed, milliseconds own, milliseconds all, int cpus) {
  return CoreShare::judge({}, {TimePoint(passed), own, all}, cpus);
}

TEST(CoreShareTest, UnboundRanksShareTheCpus) {
  EXPECT_EQ(cpus_of_rank(8, 8, 4), 2);
  EXPECT_EQ(cpus_of_rank(8, 8, 3), 2);
  EXPECT_EQ(cpus_of_rank(8, 8, 9), 1);
}

TEST(CoreShareTest, ABoundRankHasOnlyItsOwnCpus) {
  EXPECT_EQ(cpus_of_rank(2, 8, 4), 2);
  EXPECT_EQ(cpus_of_rank(1, 4, 2), 1) << "the other has three";
}

TEST(CoreShareTest, ACoreOnWhichTheApplicationComputesIsCrowded) {
  EXPECT_EQ(judged(milliseconds(10), milliseconds(0), milliseconds(10), 1), Finding::kCrowded);
  EXPECT_EQ(judged(milliseconds(10), milliseconds(5), milliseconds(10), 1), Finding::kCrowded);
}

TEST(CoreShareTest, ACoreThatIsIdleWhileTheThreadIsOffItIsFree) {
  EXPECT_EQ(judged(milliseconds(10), milliseconds(5), milliseconds(5), 1), Finding::kFree);
  EXPECT_EQ(judged(milliseconds(10), milliseconds(0), milliseconds(2), 1), Finding::kFree);
}

TEST(CoreShareTest, OneIdleCoreOfSeveralIsEnough) {
  EXPECT_EQ(judged(milliseconds(10), milliseconds(0), milliseconds(30), 4), Finding::kFree);
  EXPECT_EQ(judged(milliseconds(10), milliseconds(0), milliseconds(40), 4), Finding::kCrowded);
}

TEST(CoreShareTest, TimeOnTheCoreDoesNotShowWhetherItIsCrowded) {
  EXPECT_EQ(judged(milliseconds(10), milliseconds(10), milliseconds(10), 1), Finding::kTooShort);
}

}  // namespace
}  // namespace peal::native
