// Schedules that end with wrong data are rejected, with the rank and the place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/verify/testing/schedules.h"
#include "peal/verify/testing/wrong.h"
#include "peal/verify/verify.h"

namespace peal::verify {
namespace {

using testing::IsEmpty;

TEST(VerifyDataTest, RejectsAMissingContribution) {
  EXPECT_THAT(
      wrong_after(kReduceToRoot, "input[0:3]@0", "input[0:2]@0"),
      has("rank 1, step 3",
          "ends with finish(reduce(begin(in_0[0]), begin(in_1[0]))) at index 0 of its output"));
}

TEST(VerifyDataTest, RejectsADuplicateContribution) {
  EXPECT_THAT(wrong_after(kStaged,
                          "move stage[0:2]@0 -> output[1]@0 x8",
                          "move input[1]@0, stage[0:2]@0 -> output[1]@0 x8"),
              has("rank 1, step 6",
                  "ends with finish(reduce(begin(in_1[0]), begin(in_0[0]), begin(in_1[0])))"));
}

TEST(VerifyDataTest, RejectsAContributionFromTheWrongIndex) {
  EXPECT_THAT(wrong_after(kRing,
                          "move partial wire[1]@2, input[2]@4 -> output[2]@4",
                          "move partial wire[1]@2, input[2]@3 -> output[2]@4"),
              has("rank 2, step 8", "at index 4 of its output"));
}

TEST(VerifyDataTest, RejectsAResultAtTheWrongPlace) {
  EXPECT_THAT(wrong_after(kAllGather, "wire[0]@0 -> output[1]@0 x3", "wire[0]@0 -> output[1]@2 x3"),
              has("rank 1, step 3",
                  "ends with nothing at index 0 of its output, which should come from index 0 "
                  "of rank 0's input"));
}

TEST(VerifyDataTest, RejectsAResultThatIsTooShort) {
  EXPECT_THAT(
      wrong_after(kStagedBroadcast, "stage[0]@0 -> output[2]@0 x7", "stage[0]@0 -> output[2]@0 x6"),
      has("rank 2, step 3", "ends with nothing at index 6 of its output"));
}

TEST(VerifyDataTest, RejectsAnUnfinishedReduction) {
  EXPECT_THAT(
      wrong_after(kReduceToRoot, "x5 finish", "x5"),
      has("rank 1, step 3", "ends with reduce(begin(in_0[0]), begin(in_1[0]), begin(in_2[0]))"));
}

TEST(VerifyDataTest, RejectsAReductionThatIsFinishedTwice) {
  EXPECT_THAT(
      wrong_after(
          kRing, "move wire[2]@4 -> output[0]@4 x2", "move wire[2]@4 -> output[0]@4 x2 finish"),
      has("rank 0, step 8", "ends with finish(begin(finish("));
}

TEST(VerifyDataTest, RejectsAReductionThatIsFinishedTooEarly) {
  EXPECT_THAT(wrong_after(kRing,
                          "move wire[2]@0, input[0]@2 -> output[0]@2 x2",
                          "move wire[2]@0, input[0]@2 -> output[0]@2 x2 finish"),
              has("rank 1, step 8", "ends with finish(reduce(finish("));
}

TEST(VerifyDataTest, RejectsAContributionMarkedAsPartial) {
  EXPECT_THAT(wrong_after(kRing,
                          "move wire[2]@0, input[0]@2 -> output[0]@2 x2",
                          "move wire[2]@0, partial input[0]@2 -> output[0]@2 x2"),
              has("rank 1, step 8", "ends with finish(reduce(reduce(begin(in_2[2]), in_0[2])"));
}

TEST(VerifyDataTest, RejectsAPartialResultMarkedAsContribution) {
  EXPECT_THAT(wrong_after(kRing,
                          "move partial wire[1]@2, input[2]@4 -> output[2]@4",
                          "move wire[1]@2, input[2]@4 -> output[2]@4"),
              has("rank 2, step 8", "ends with finish(reduce(begin(reduce("));
}

TEST(VerifyDataTest, RejectsReductionsInDifferentOrders) {
  EXPECT_THAT(wrong_after(kStaged,
                          "move stage[0:2]@0 -> output[1]@0 x8",
                          "move stage[1]@0, stage[0]@0 -> output[1]@0 x8"),
              has("rank 1, step 6", "not the same bits"));
}

TEST(VerifyDataTest, RejectsAReductionThatRoundsInBetween) {
  // Two ranks compute (in_0 op in_1) op in_2 in one step, the third rank in two steps.
  const auto text = [](std::string_view other) {
    return "all_reduce ranks=3 per_host=3 count=4 registered\n"
           "rank 0 span=2\n signal 1\n wait [1:3] 1\n"
           " move input[0:3]@0 -> output[0]@0 x4 finish\n signal 2\n wait [1:3] 2\n"
           "rank 1 span=2\n signal 1\n wait [0:4:2] 1\n"
           " move input[0:3]@0 -> output[1]@0 x4 finish\n signal 2\n wait [0:4:2] 2\n"
           "rank 2 span=2\n signal 1\n wait [0:2] 1\n" +
           std::string(other) + " signal 2\n wait [0:2] 2\n";
  };
  EXPECT_THAT(wrong_with(text(" move input[0:3]@0 -> output[2]@0 x4 finish\n")), IsEmpty());
  EXPECT_THAT(wrong_with(text(" move input[0:2]@0 -> output[2]@0 x4\n"
                              " move partial output[2]@0, input[2]@0 -> output[2]@0 x4 finish\n")),
              has("rank 2", "not the same bits"));
}

TEST(VerifyDataTest, RejectsAFinishInAnOperationThatDoesNotReduce) {
  EXPECT_THAT(
      wrong_after(kBroadcast, "wire[1]@0 -> output[0]@0 x7", "wire[1]@0 -> output[0]@0 x7 finish"),
      has("rank 0, step 0", "but the operation does not reduce"));
}

TEST(VerifyDataTest, RejectsAReadOfUnwrittenMemory) {
  EXPECT_THAT(
      wrong_after(kStaged, "move input[1]@0 -> stage[1]@0 x8", "move input[1]@0 -> stage[1]@0 x7"),
      has("rank 1, step 4", "reads stage[1]@0 x8, which no rank has written"));
}

TEST(VerifyDataTest, RejectsAStoreThatNoRankReads) {
  EXPECT_THAT(
      wrong_after(kStaged,
                  "rank 1 stage=8 span=2\n",
                  "rank 1 stage=8 span=2\n  wait [0] 0\n  move input[1]@1 -> stage[1]@0 x7\n"),
      has("rank 1, step 1", "stores data to stage[1] that no rank reads before step 3"));
  EXPECT_THAT(wrong_after(kReduceToRoot,
                          "  move input[0:3]@0 -> output",
                          "  move input[1]@0 -> output[1]@0 x5\n  move input[0:3]@0 -> output"),
              has("rank 1, step 1", "stores data to output[1] that no rank reads"));
}

}  // namespace
}  // namespace peal::verify
