// Schedules with messages that do not match, or that touch forbidden memory, are rejected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/verify/testing/schedules.h"
#include "peal/verify/testing/wrong.h"
#include "peal/verify/verify.h"

namespace peal::verify {
namespace {

TEST(VerifyAccessTest, RejectsAMessageOfAnotherSize) {
  EXPECT_THAT(
      wrong_after(kBroadcast, "wire[1]@0 -> output[2]@0 x7", "wire[1]@0 -> output[2]@0 x6"),
      has("rank 2, step 0", "receives 6 elements at 0 from rank 1, which sends 7 at 0 at step 1"));
}

TEST(VerifyAccessTest, RejectsASkippedPositionInTheStream) {
  EXPECT_THAT(
      wrong_after(kRing, "move output[1]@4 -> wire[2]@2 x2", "move output[1]@4 -> wire[2]@3 x2"),
      has("rank 1, step 2", "says position 3, but position 2 is next in the stream to rank 2"));
  EXPECT_THAT(
      wrong_after(kRing, "move wire[0]@4 -> output[1]@0 x2", "move wire[0]@5 -> output[1]@0 x2"),
      has("rank 1, step 5", "receives 2 elements at 5 from rank 0, which sends 2 at 4"));
}

TEST(VerifyAccessTest, RejectsAMessageThatIsNotReceived) {
  EXPECT_THAT(wrong_after(kBroadcast,
                          "  move input[1]@0 -> wire[0]@0 x7\n",
                          "  move input[1]@0 -> wire[0]@0 x7\n  move input[1]@0 -> wire[0]@7 x7\n"),
              has("rank 1, step 1", "sends rank 0 a message that is not received"));
}

// ---- memory that a rank may not touch

TEST(VerifyAccessTest, RejectsAccessToMemoryThatIsNotRegistered) {
  EXPECT_THAT(wrong_after(kDirect, " registered", ""),
              has("rank 0, step 2", "input of rank 1 is touched, but not all memory"));
}

TEST(VerifyAccessTest, RejectsAccessToMemoryAndCountersOfAnotherHost) {
  EXPECT_THAT(wrong_after(kDirect, "per_host=2", "per_host=1"),
              testing::AllOf(has("rank 0, step 2", "input of rank 1 is on another host"),
                             has("rank 0, step 1", "the counter of rank 1 is on another host")));
}

TEST(VerifyAccessTest, RejectsSlicesOutsideTheirMemory) {
  EXPECT_THAT(
      wrong_after(kGather, "wire[0]@0 -> output[1]@0", "wire[0]@0 -> output[1]@5"),
      has("rank 1, step 0", "3 elements at 5 are not inside the 7 elements of rank 1's output"));
  EXPECT_THAT(wrong_after(kGather, "input[0]@0 -> wire", "input[0]@-1 -> wire"),
              has("rank 0, step 0", "not inside"));
  EXPECT_THAT(wrong_after(kStaged, "stage[1]@0 x8", "stage[1]@1 x8"),
              has("rank 1, step 1", "not inside the 8 elements of rank 1's stage"));
}

TEST(VerifyAccessTest, RejectsAWriteToAnInput) {
  EXPECT_THAT(wrong_after(kGather, "wire[0]@0 -> output[1]@0 x3", "wire[0]@0 -> input[1]@0 x3"),
              has("rank 1, step 0", "a move writes to an input"));
}

TEST(VerifyAccessTest, RejectsAStageBeyondTheLimit) {
  EXPECT_THAT(wrong_after(kStaged, "stage_limit=8", "stage_limit=7"),
              has("rank 0, step 6", "a stage of 8 elements is not between 0 and the limit 7"));
}

}  // namespace
}  // namespace peal::verify
