// Schedules that race or wait forever are rejected, with the ranks and the steps.
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/schedule/text.h"
#include "peal/verify/testing/schedules.h"
#include "peal/verify/testing/wrong.h"
#include "peal/verify/verify.h"

namespace peal::verify {
namespace {

using schedule::parse_schedule;
using schedule::Schedule;
using testing::IsEmpty;

TEST(VerifyOrderTest, RejectsAReadOfAnInputThatMayNotBeReady) {
  EXPECT_THAT(wrong_after(kReduceToRoot, "  wait [0:4:2] 1\n", "  wait [2] 1\n"),
              has("rank 1, step 1", "unordered with the user of rank 0"));
  EXPECT_THAT(wrong_after(kReduceToRoot, "  wait [0:4:2] 1\n", "  wait [0] 1\n"),
              has("rank 1, step 1", "touches input[2]@0 x5, but its rank may not have begun"));
}

TEST(VerifyOrderTest, RejectsLeavingWhilePeersStillRead) {
  EXPECT_THAT(wrong_after(kReduceToRoot,
                          "rank 2 span=1\n  signal 1\n  wait [1] 1\n",
                          "rank 2 span=1\n  signal 1\n"),
              has("rank", "unordered with"));
  EXPECT_THAT(wrong_after(kDirect, "  wait [1] 2\n", ""), has("rank", "unordered with"));
}

TEST(VerifyOrderTest, RejectsOverwritingASourceThatMayNotBeSent) {
  // A ring must not receive a partial sum into memory that is still being sent.
  EXPECT_THAT(
      wrong_with("all_gather ranks=2 count=2 stage_limit=2\n"
                 "rank 0 stage=2\n"
                 "  move input[0]@0 -> stage[0]@0 x2\n"
                 "  move stage[0]@0 -> wire[1]@0 x2\n"
                 "  move wire[1]@0 -> stage[0]@0 x2\n"
                 "  move stage[0]@0 -> output[0]@2 x2\n"
                 "  move input[0]@0 -> output[0]@0 x2\n"
                 "rank 1 stage=2\n"
                 "  move input[1]@0 -> wire[0]@0 x2\n"
                 "  move wire[0]@0 -> output[1]@0 x2\n"
                 "  move input[1]@0 -> output[1]@2 x2\n"),
      has("rank 0, step 2", "writes stage[0]@0 x2, unordered with the read of rank 0 at step 1"));
}

TEST(VerifyOrderTest, AcceptsOverwritingASourceAfterTheReceiverAnswers) {
  EXPECT_THAT(wrong_with("all_gather ranks=2 count=2 stage_limit=2\n"
                         "rank 0 stage=2\n"
                         "  move input[0]@0 -> stage[0]@0 x2\n"
                         "  move stage[0]@0 -> wire[1]@0 x2\n"
                         "  move wire[1]@0 -> stage[0]@0 x2\n"
                         "  move stage[0]@0 -> output[0]@2 x2\n"
                         "  move input[0]@0 -> output[0]@0 x2\n"
                         "rank 1 stage=2\n"
                         "  move wire[0]@0 -> output[1]@0 x2\n"
                         "  move input[1]@0 -> wire[0]@0 x2\n"
                         "  move input[1]@0 -> output[1]@2 x2\n"),
              IsEmpty());
}

TEST(VerifyOrderTest, RejectsUnorderedWritesToOnePlace) {
  EXPECT_THAT(wrong_after(kDirect,
                          "move input[0:2]@4 -> output[0:2]@4 x4",
                          "move input[0:2]@3 -> output[0:2]@3 x5"),
              has("rank 0, step 2", "unordered with the write of rank 1 at step 2"));
}

TEST(VerifyOrderTest, RejectsUsingAStageThatAnEarlierOperationMayUse) {
  EXPECT_THAT(
      wrong_after(kStagedBroadcast, "  wait [1:3] 0\n", "  wait [1] 0\n"),
      has("rank 0, step 1", "writes stage[0]@0 x7, unordered with an earlier operation of rank 2"));
}

TEST(VerifyOrderTest, AcceptsReadingAStageAfterTheLastSignal) {
  const std::string late = changed(kStagedBroadcast,
                                   "  move stage[0]@0 -> output[2]@0 x7\n  signal 1\n",
                                   "  signal 1\n  move stage[0]@0 -> output[2]@0 x7\n");
  const std::vector row(5, parse_schedule(late));
  EXPECT_THAT(words(verify_sequence(row)), IsEmpty());
}

TEST(VerifyOrderTest, RejectsWritingToAStageWhoseOwnerMayNotHaveBegun) {
  EXPECT_THAT(
      wrong_after(kPushed, "  wait [0] 1\n", "  wait [0] 0\n"),
      has("rank 1, step 2", "writes stage[0]@0 x4, unordered with an earlier operation of rank 0"));
}

TEST(VerifyOrderTest, RejectsASequenceInWhichOperationsRace) {
  // Alone, each is rejected because of possible earlier operations; here there are such operations.
  const std::string hasty = changed(kStagedBroadcast, "  wait [1:3] 0\n", "  wait [1] 0\n");
  const Schedule first = parse_schedule(kStagedBroadcast);
  const Schedule row[] = {first, first, parse_schedule(hasty)};
  EXPECT_THAT(words(verify_sequence(row)),
              has("operation 2, rank 0, step 1",
                  "unordered with the read of rank 2 at step 1 of operation 0"));
}

TEST(VerifyOrderTest, RejectsSequencesOfDifferentGroups) {
  const Schedule row[] = {parse_schedule(kDirect), parse_schedule(kReduceToRoot)};
  EXPECT_THAT(words(verify_sequence(row)),
              has("operation 1, rank 0", "not an operation of the same group"));
}

TEST(VerifyOrderTest, RejectsABarrierThatARankCanPassAlone) {
  EXPECT_THAT(wrong_after(kBarrier, "  wait [0:4:2] 1\n", "  wait [0] 1\n"),
              has("rank 1, step 2", "leaves the barrier, which rank 2 may not have entered"));
}

// ---- deadlock

TEST(VerifyOrderTest, RejectsAWaitForASignalThatNeverComes) {
  EXPECT_THAT(wrong_after(kDirect,
                          "rank 1 span=2\n  signal 1\n  wait [0] 1\n",
                          "rank 1 span=2\n  wait [0] 2\n  signal 1\n"),
              testing::AllOf(has("rank 0, step 1", "waits forever for rank 1"),
                             has("rank 1, step 0", "waits forever for rank 0")));
}

TEST(VerifyOrderTest, RejectsAReceiveOfAMessageThatNeverComes) {
  const std::string silent = changed(kBroadcast, "  move output[1]@0 -> wire[2]@0 x7\n", "");
  EXPECT_THAT(wrong_with(silent), has("rank 2, step 0", "waits forever for a message of rank 1"));
}

}  // namespace
}  // namespace peal::verify
