#include "peal/observe/phrases.h"

#include <gtest/gtest.h>

namespace peal::observe {
namespace {

using namespace std::chrono_literals;

TEST(PhrasesTest, ATimeIsTheTimeOfDayInMicroseconds) {
  EXPECT_EQ(time_text(WallTime(48h + 7h + 5min + 9s + 12'345'678ns)), "07:05:09.012345");
}

TEST(PhrasesTest, ALengthHasAFittingUnit) {
  EXPECT_EQ(length_text(3210ms), "3.2 s");
  EXPECT_EQ(length_text(15ms), "15 ms");
  EXPECT_EQ(length_text(40us), "40 us");
}

TEST(PhrasesTest, ConsecutiveRanksAreShownAsARange) {
  EXPECT_EQ(ranks_text({3}), "rank 3");
  EXPECT_EQ(ranks_text({0, 1}), "ranks 0 and 1");
  EXPECT_EQ(ranks_text({0, 1, 2, 3, 8}), "ranks 0 to 3 and 8");
  EXPECT_EQ(ranks_text({0, 2, 4}), "ranks 0, 2 and 4");
}

TEST(PhrasesTest, ALongListOfRanksIsCutShort) {
  std::vector<Rank> even;
  for (Rank rank = 0; rank < 100; rank += 2) even.push_back(rank);
  EXPECT_EQ(ranks_text(even), "ranks 0, 2, 4, 6, 8, 10, 12, 14 and others");
}

TEST(PhrasesTest, ASentenceBeginsWithACapitalAndEndsWithAFullStop) {
  EXPECT_EQ(as_sentence("all is well"), "All is well.");
  EXPECT_EQ(as_sentence("All is well."), "All is well.");
  EXPECT_EQ(as_sentence("rank 0 threw: why me?"), "Rank 0 threw: why me?.");
  EXPECT_EQ(as_sentence(""), ".");
}

}  // namespace
}  // namespace peal::observe
