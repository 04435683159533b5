// Schedules that race, or wait for ever, are refused, with the ranks and the steps.
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

TEST(VerifyOrderTest, ReadingAnInputThatMayNotBeThereYetIsFound) {
  EXPECT_THAT(wrong_after(kReduce, "  wait [0:4:2] 1\n", "  wait [2] 1\n"),
              has("rank 1, step 1", "in no order with the user of rank 0"));
  EXPECT_THAT(wrong_after(kReduce, "  wait [0:4:2] 1\n", "  wait [0] 1\n"),
              has("rank 1, step 1", "touches input[2]@0 x5, whose rank need not have begun"));
}

TEST(VerifyOrderTest, LeavingAnOperationWhilePeersReadIsFound) {
  EXPECT_THAT(
      wrong_after(
          kReduce, "rank 2 span=1\n  signal 1\n  wait [1] 1\n", "rank 2 span=1\n  signal 1\n"),
      has("rank", "in no order with"));
  EXPECT_THAT(wrong_after(kDirect, "  wait [1] 2\n", ""), has("rank", "in no order with"));
}

TEST(VerifyOrderTest, ASourceThatIsOverwrittenBeforeItIsSentIsFound) {
  // The partial sum of a ring must not be received into what is still being sent.
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
      has("rank 0, step 2", "writes stage[0]@0 x2, in no order with the read of rank 0 at step 1"));
}

TEST(VerifyOrderTest, ASourceMayBeOverwrittenOnceItsReceiverHasAnswered) {
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

TEST(VerifyOrderTest, TwoRanksThatWriteOnePlaceInNoOrderAreFound) {
  EXPECT_THAT(wrong_after(kDirect,
                          "move input[0:2]@4 -> output[0:2]@4 x4",
                          "move input[0:2]@3 -> output[0:2]@3 x5"),
              has("rank 0, step 2", "in no order with the write of rank 1 at step 2"));
}

TEST(VerifyOrderTest, UsingTheStageBeforeAnEarlierOperationHasLeftItIsFound) {
  EXPECT_THAT(wrong_after(kStagedBroadcast, "  wait [1:3] 0\n", "  wait [1] 0\n"),
              has("rank 0, step 1",
                  "writes stage[0]@0 x7, in no order with an earlier operation of rank 2"));
}

TEST(VerifyOrderTest, AStageMayBeReadAfterTheLastSignal) {
  const std::string late = changed(kStagedBroadcast,
                                   "  move stage[0]@0 -> output[2]@0 x7\n  signal 1\n",
                                   "  signal 1\n  move stage[0]@0 -> output[2]@0 x7\n");
  const std::vector row(5, parse_schedule(late));
  EXPECT_THAT(words(verify_sequence(row)), IsEmpty());
}

TEST(VerifyOrderTest, PushingIntoAStageWhoseOwnerHasNotBegunIsFound) {
  EXPECT_THAT(wrong_after(kPushed, "  wait [0] 1\n", "  wait [0] 0\n"),
              has("rank 1, step 2",
                  "writes stage[0]@0 x4, in no order with an earlier operation of rank 0"));
}

TEST(VerifyOrderTest, ASequenceIsRefusedWhereOperationsMeet) {
  // Alone each is refused for what might come before; in a row it does come.
  const std::string hasty = changed(kStagedBroadcast, "  wait [1:3] 0\n", "  wait [1] 0\n");
  const Schedule first = parse_schedule(kStagedBroadcast);
  const Schedule row[] = {first, first, parse_schedule(hasty)};
  EXPECT_THAT(words(verify_sequence(row)),
              has("operation 2, rank 0, step 1",
                  "in no order with the read of rank 2 at step 1 of operation 0"));
}

TEST(VerifyOrderTest, SequencesAreOfOneGroup) {
  const Schedule row[] = {parse_schedule(kDirect), parse_schedule(kReduce)};
  EXPECT_THAT(words(verify_sequence(row)),
              has("operation 1, rank 0", "not an operation of the same group"));
}

TEST(VerifyOrderTest, ABarrierThatSomebodyCanPassAloneIsFound) {
  EXPECT_THAT(wrong_after(kBarrier, "  wait [0:4:2] 1\n", "  wait [0] 1\n"),
              has("rank 1, step 2", "leaves the barrier, which rank 2 need not have entered"));
}

// ---- deadlock

TEST(VerifyOrderTest, WaitingForASignalThatNeverComesIsFound) {
  EXPECT_THAT(wrong_after(kDirect,
                          "rank 1 span=2\n  signal 1\n  wait [0] 1\n",
                          "rank 1 span=2\n  wait [0] 2\n  signal 1\n"),
              testing::AllOf(has("rank 0, step 1", "waits for ever for rank 1"),
                             has("rank 1, step 0", "waits for ever for rank 0")));
}

TEST(VerifyOrderTest, WaitingForAMessageThatNeverComesIsFound) {
  const std::string silent = changed(kBroadcast, "  move output[1]@0 -> wire[2]@0 x7\n", "");
  EXPECT_THAT(wrong_with(silent), has("rank 2, step 0", "waits for ever for a message of rank 1"));
}

}  // namespace
}  // namespace peal::verify
