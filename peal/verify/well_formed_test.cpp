// Schedules that are not in canonical form, and invalid problems, are rejected.
#include <string>
#include <string_view>

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

TEST(VerifyWellFormedTest, RejectsNumbersThatCouldOverflow) {
  EXPECT_THAT(wrong_with("broadcast ranks=1 stage_limit=9223372036854775807\n"
                         "rank 0 stage=9223372036854775807\n"),
              has("rank 0, step 0", "a stage of 9223372036854775807 elements"));
  EXPECT_THAT(wrong_with("barrier ranks=1\nrank 0 span=9223372036854775807\n"
                         " signal 9223372036854775807\n"),
              has("rank 0, step 1", "a span of 9223372036854775807 is too large"));
}

TEST(VerifyWellFormedTest, RejectsRanksThatDisagreeAboutStageOrSpan) {
  EXPECT_THAT(wrong_after(kStaged, "rank 1 stage=8 span=2", "rank 1 stage=8 span=3"),
              has("rank 1, step 6", "stage 8 and span 3 are not the 8 and 2 of rank 0"));
}

TEST(VerifyWellFormedTest, RejectsSignalsThatDoNotAscendToTheSpan) {
  EXPECT_THAT(wrong_after(kReduceToRoot, "x5 finish\n  signal 1\n", "x5 finish\n"),
              has("rank 1, step 2", "the last signal is 0, but the span is 1"));
  EXPECT_THAT(
      wrong_after(kReduceToRoot, "x5 finish\n  signal 1\n", "x5 finish\n  signal 1\n  signal 1\n"),
      has("rank 1, step 4", "signal 1 comes after signal 1"));
  EXPECT_THAT(wrong_after(kReduceToRoot, "x5 finish\n  signal 1\n", "x5 finish\n  signal 2\n"),
              has("rank 1, step 2", "signal 2 is not between 1 and the span 1"));
}

TEST(VerifyWellFormedTest, RejectsAWaitThatAddsNoOrder) {
  EXPECT_THAT(wrong_after(kReduceToRoot, "  wait [0:4:2] 1\n", "  wait [0:4:2] 1\n  wait [2] 1\n"),
              has("rank 1, step 1", "waits for rank 2 to reach 1, which it already knows"));
  EXPECT_THAT(wrong_after(kReduceToRoot, "  wait [0:4:2] 1\n", "  wait [0:4:2] 1\n  wait [2] -1\n"),
              has("rank 1, step 1", "a wait for -1 is not between 0 and the span 1"));
}

TEST(VerifyWellFormedTest, AWaitMayListThisRankOnlyInItsMiddle) {
  EXPECT_THAT(wrong_after(kBarrier, "wait [0:4:2] 1", "wait [0:3] 1"), IsEmpty());
  EXPECT_THAT(wrong_after(kBarrier, "wait [1:3] 1", "wait [0:3] 1"),
              has("rank 0, step 1", "a rank waits for itself"));
  EXPECT_THAT(wrong_after(kBarrier, "wait [0:2] 1", "wait [0:3] 1"),
              has("rank 2, step 1", "a rank waits for itself"));
  EXPECT_THAT(
      wrong_after(kBarrier, "  signal 1\n  wait [0:4:2] 1\n", "  wait [0:3] 1\n  signal 1\n"),
      has("rank 1, step 0", "waits forever for rank 1 to reach 1"));
}

TEST(VerifyWellFormedTest, RejectsMovesThatAreNotInCanonicalForm) {
  const auto wrong = [](std::string_view move) {
    return wrong_with(
        "all_reduce ranks=2 per_host=2 count=8 stage_limit=8 in_place registered\n"
        "rank 0 stage=8 span=1\n" +
        std::string(move) + "\nsignal 1\nrank 1 stage=8 span=1\nsignal 1\n");
  };
  const auto says = [](std::string_view what) { return has("rank 0, step 0", what); };
  EXPECT_THAT(wrong("move input[0]@0 -> stage[0]@0 x0"), says("a move has no elements"));
  EXPECT_THAT(wrong("move input[0:2:2]@0 -> stage[0]@0 x1"), says("not in canonical form"));
  EXPECT_THAT(wrong("move input[0:0]@0 -> stage[0]@0 x1"), says("not in canonical form"));
  EXPECT_THAT(wrong("move input[1:3]@0 -> stage[0]@0 x1"),
              says("ranks 1 to 2 are not all in the group"));
  EXPECT_THAT(wrong("move input[0]@0 -> stage[1]@0, stage[0]@0 x1"),
              says("not in ascending order"));
  EXPECT_THAT(wrong("move input[0]@0 -> stage[0]@0, stage[0]@1 x2"), says("two targets overlap"));
  EXPECT_THAT(wrong("move input[0]@1 -> output[0]@0 x2"), says("a source and a target overlap"));
  EXPECT_THAT(wrong("move input[0]@1 -> output[0]@1 x2"), says("a copy onto itself"));
  EXPECT_THAT(wrong("move partial input[0]@0 -> stage[0]@0 x2"),
              says("a source is marked as partial, and the move does not reduce"));
  EXPECT_THAT(wrong("move input[0:2]@0 -> partial stage[0]@0 x2"),
              says("a target is marked as partial"));
  EXPECT_THAT(wrong("move wire[0]@0 -> output[0]@1 x2"), says("no link to itself"));
  EXPECT_THAT(wrong("move wire[0:2]@0 -> output[0]@1 x2"), says("one peer"));
  EXPECT_THAT(wrong("move wire[1]@0, wire[1]@2 -> output[0]@1 x2"), says("from one peer at most"));
  for (const std::string_view send : {"move input[0:2]@0 -> wire[1]@0 x1",
                                      "move input[1]@0 -> wire[1]@0 x1",
                                      "move input[0]@0 -> wire[1]@0 x1 finish",
                                      "move wire[1]@0 -> wire[1]@0 x1",
                                      "move input[0]@0, output[0]@0 -> wire[1]@0 x1",
                                      "move input[0]@0 -> output[0]@0, wire[1]@0 x1"}) {
    EXPECT_THAT(wrong(send), says("a send copies one slice of the rank's own memory")) << send;
  }
}

TEST(VerifyWellFormedTest, RejectsMovesWithoutSourceOrTarget) {
  Schedule schedule = parse_schedule(kGather);
  schedule.parts[0].steps[0] = schedule::Move{.count = Elements(3)};
  EXPECT_THAT(words(verify(schedule)), has("rank 0, step 0", "a move has no source"));
  schedule.parts[0].steps[0] = schedule::Move{.from = {{}}, .count = Elements(3)};
  EXPECT_THAT(words(verify(schedule)), has("rank 0, step 0", "a move has no target"));
}

TEST(VerifyWellFormedTest, RejectsInvalidProblems) {
  EXPECT_THAT(wrong_with("barrier ranks=0"), has("rank 0, step 0", "0 ranks, 1 on a host"));
  EXPECT_THAT(wrong_with("barrier ranks=1"), has("rank 0, step 0", "0 parts for 1 ranks"));
  EXPECT_THAT(wrong_with("barrier ranks=1 root=1\nrank 0"),
              has("rank 0, step 0", "the root is rank 1 of 1"));
  EXPECT_THAT(wrong_with("all_to_all ranks=1 in_place\nrank 0"),
              has("rank 0, step 0", "cannot be in place"));
  EXPECT_THAT(wrong_with("gather ranks=1 counts=1,2\nrank 0"),
              has("rank 0, step 0", "2 counts for 1 ranks"));
  EXPECT_THAT(wrong_with("reduce ranks=1 counts=1\nrank 0"),
              has("rank 0, step 0", "one count, not one for each rank"));
  EXPECT_THAT(wrong_with("reduce ranks=1 count=-1\nrank 0"), has("rank 0, step 0", "negative"));
  EXPECT_THAT(wrong_with("gather ranks=2 counts=9223372036854775807,1\nrank 0\nrank 1"),
              has("rank 0, step 0", "too large"));
  Schedule schedule = parse_schedule("barrier\nrank 0");
  schedule.problem.operation = Operation::kSend;
  EXPECT_THAT(words(verify(schedule)), has("rank 0, step 0", "send has no schedule"));
}

}  // namespace
}  // namespace peal::verify
