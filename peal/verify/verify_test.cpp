// Schedules written by hand: right ones are accepted, and each kind of wrong one is refused with
// the rank and the step that are to blame.
#include "peal/verify/verify.h"

#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/schedule/text.h"

namespace peal::verify {
namespace {

using schedule::parse_schedule;
using schedule::Schedule;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// Owners of halves reduce from both inputs into both outputs.
constexpr std::string_view kDirect = R"(
all_reduce ranks=2 per_host=2 count=8 in_place registered
rank 0 span=2
  signal 1
  wait [1] 1
  move input[0:2]@0 -> output[0:2]@0 x4 finish
  signal 2
  wait [1] 2
rank 1 span=2
  signal 1
  wait [0] 1
  move input[0:2]@4 -> output[0:2]@4 x4 finish
  signal 2
  wait [0] 2
)";

// Each rank shows a copy of its input and reduces everything for itself.
constexpr std::string_view kStaged = R"(
all_reduce ranks=2 per_host=2 count=8 stage_limit=8
rank 0 stage=8 span=2
  wait [1] 0
  move input[0]@0 -> stage[0]@0 x8
  signal 1
  wait [1] 1
  move stage[0:2]@0 -> output[0]@0 x8 finish
  signal 2
rank 1 stage=8 span=2
  wait [0] 0
  move input[1]@0 -> stage[1]@0 x8
  signal 1
  wait [0] 1
  move stage[0:2]@0 -> output[1]@0 x8 finish
  signal 2
)";

// Each rank writes what it has for the others into their stages.
constexpr std::string_view kPushed = R"(
all_to_all ranks=2 per_host=2 count=4 stage_limit=8
rank 0 stage=4 span=2
  signal 1
  wait [1] 1
  move input[0]@4 -> stage[1]@0 x4
  signal 2
  move input[0]@0 -> output[0]@0 x4
  wait [1] 2
  move stage[0]@0 -> output[0]@4 x4
rank 1 stage=4 span=2
  signal 1
  wait [0] 1
  move input[1]@0 -> stage[0]@0 x4
  signal 2
  move input[1]@4 -> output[1]@4 x4
  wait [0] 2
  move stage[1]@0 -> output[1]@0 x4
)";

// A ring between three hosts, a block of two elements for each rank.
constexpr std::string_view kRing = R"(
all_reduce ranks=3 count=6
rank 0
  move input[0]@4 -> wire[1]@0 x2
  move wire[2]@0, input[0]@2 -> output[0]@2 x2
  move output[0]@2 -> wire[1]@2 x2
  move wire[2]@2, input[0]@0 -> output[0]@0 x2 finish
  move output[0]@0 -> wire[1]@4 x2
  move wire[2]@4 -> output[0]@4 x2
  move output[0]@4 -> wire[1]@6 x2
  move wire[2]@6 -> output[0]@2 x2
rank 1
  move input[1]@0 -> wire[2]@0 x2
  move wire[0]@0, input[1]@4 -> output[1]@4 x2
  move output[1]@4 -> wire[2]@2 x2
  move wire[0]@2, input[1]@2 -> output[1]@2 x2 finish
  move output[1]@2 -> wire[2]@4 x2
  move wire[0]@4 -> output[1]@0 x2
  move output[1]@0 -> wire[2]@6 x2
  move wire[0]@6 -> output[1]@4 x2
rank 2
  move input[2]@2 -> wire[0]@0 x2
  move wire[1]@0, input[2]@0 -> output[2]@0 x2
  move output[2]@0 -> wire[0]@2 x2
  move wire[1]@2, input[2]@4 -> output[2]@4 x2 finish
  move output[2]@4 -> wire[0]@4 x2
  move wire[1]@4 -> output[2]@2 x2
  move output[2]@2 -> wire[0]@6 x2
  move wire[1]@6 -> output[2]@0 x2
)";

// The root has read everybody's input before anybody may leave.
constexpr std::string_view kReduce = R"(
reduce ranks=3 per_host=3 root=1 count=5 registered
rank 0 span=1
  signal 1
  wait [1] 1
rank 1 span=1
  wait [0:4:2] 1
  move input[0:3]@0 -> output[1]@0 x5 finish
  signal 1
rank 2 span=1
  signal 1
  wait [1] 1
)";

constexpr std::string_view kBroadcast = R"(
broadcast ranks=3 root=1 count=7
rank 0
  move wire[1]@0 -> output[0]@0 x7
rank 1
  move input[1]@0 -> wire[0]@0 x7
  move output[1]@0 -> wire[2]@0 x7
rank 2
  move wire[1]@0 -> output[2]@0 x7
)";

// A broadcast that does not wait for its receivers: they are waited for before the stage is used
// again.
constexpr std::string_view kStagedBroadcast = R"(
broadcast ranks=3 per_host=3 count=7 stage_limit=7
rank 0 stage=7 span=1
  wait [1:3] 0
  move input[0]@0 -> stage[0]@0 x7
  signal 1
rank 1 stage=7 span=1
  wait [0] 1
  move stage[0]@0 -> output[1]@0 x7
  signal 1
rank 2 stage=7 span=1
  wait [0] 1
  move stage[0]@0 -> output[2]@0 x7
  signal 1
)";

constexpr std::string_view kScatter = R"(
scatter ranks=2 root=1 counts=3,4 in_place
rank 0
  move wire[1]@0 -> output[0]@0 x3
rank 1
  move input[1]@0 -> wire[0]@0 x3
)";

constexpr std::string_view kGather = R"(
gather ranks=2 root=1 counts=3,4 in_place
rank 0
  move input[0]@0 -> wire[1]@0 x3
rank 1
  move wire[0]@0 -> output[1]@0 x3
)";

constexpr std::string_view kAllGather = R"(
all_gather ranks=2 counts=3,4
rank 0
  move input[0]@0 -> wire[1]@0 x3
  move input[0]@0 -> output[0]@0 x3
  move wire[1]@0 -> output[0]@3 x4
rank 1
  move input[1]@0 -> wire[0]@0 x4
  move input[1]@0 -> output[1]@3 x4
  move wire[0]@0 -> output[1]@0 x3
)";

constexpr std::string_view kReduceScatter = R"(
reduce_scatter ranks=2 counts=3,4 in_place
rank 0
  move input[0]@3 -> wire[1]@0 x4
  move input[0]@0, wire[1]@0 -> output[0]@0 x3 finish
rank 1
  move input[1]@0 -> wire[0]@0 x3
  move wire[0]@0, input[1]@3 -> output[1]@0 x4 finish
)";

constexpr std::string_view kBarrier = R"(
barrier ranks=3 per_host=3
rank 0 span=1
  signal 1
  wait [1:3] 1
rank 1 span=1
  signal 1
  wait [0:4:2] 1
rank 2 span=1
  signal 1
  wait [0:2] 1
)";

// The token's content has no meaning.
constexpr std::string_view kTokenBarrier = R"(
barrier ranks=2 stage_limit=2
rank 0 stage=2
  move stage[0]@0 -> wire[1]@0 x1
  move wire[1]@0 -> stage[0]@1 x1
rank 1 stage=2
  move stage[1]@0 -> wire[0]@0 x1
  move wire[0]@0 -> stage[1]@1 x1
)";

constexpr std::pair<std::string_view, std::string_view> kRight[] = {
    {"direct", kDirect},
    {"staged", kStaged},
    {"pushed", kPushed},
    {"ring", kRing},
    {"reduce", kReduce},
    {"broadcast", kBroadcast},
    {"staged broadcast", kStagedBroadcast},
    {"scatter", kScatter},
    {"gather", kGather},
    {"all_gather", kAllGather},
    {"reduce_scatter", kReduceScatter},
    {"barrier", kBarrier},
    {"token barrier", kTokenBarrier}};

std::vector<std::string> words(const std::vector<Violation>& violations) {
  std::vector<std::string> all;
  for (const Violation& violation : violations) all.push_back(describe(violation));
  return all;
}

std::vector<std::string> wrong_with(std::string_view text) {
  return words(verify(parse_schedule(text)));
}

/// The text with its only `old` replaced: what is wrong is one thing.
std::string changed(std::string_view text, std::string_view old, std::string_view by) {
  std::string result(text);
  const std::size_t at = result.find(old);
  EXPECT_NE(at, std::string::npos) << "\"" << old << "\" is not in the schedule";
  EXPECT_EQ(result.find(old, at + 1), std::string::npos) << "\"" << old << "\" is there twice";
  return result.replace(at, old.size(), by);
}

/// What is wrong after the change, and that nothing was before.
std::vector<std::string> wrong_after(std::string_view text,
                                     std::string_view old,
                                     std::string_view by) {
  EXPECT_THAT(wrong_with(text), IsEmpty());
  return wrong_with(changed(text, old, by));
}

auto has(std::string_view rank_and_step, std::string_view what) {
  return Contains(
      testing::AllOf(HasSubstr(std::string(rank_and_step)), HasSubstr(std::string(what))));
}

TEST(VerifyTest, RightSchedulesAreAccepted) {
  for (const auto& [name, text] : kRight) EXPECT_THAT(wrong_with(text), IsEmpty()) << name;
}

TEST(VerifyTest, RightSchedulesMayFollowEachOther) {
  const std::string_view of_two[] = {kDirect, kStaged, kPushed};
  for (const std::string_view first : of_two) {
    for (const std::string_view second : of_two) {
      const Schedule row[] = {parse_schedule(first), parse_schedule(second), parse_schedule(first)};
      EXPECT_THAT(words(verify_sequence(row)), IsEmpty()) << first << second;
    }
  }
  const Schedule row[] = {parse_schedule(kReduce),
                          parse_schedule(kStagedBroadcast),
                          parse_schedule(kBarrier),
                          parse_schedule(kStagedBroadcast),
                          parse_schedule(kStagedBroadcast)};
  EXPECT_THAT(words(verify_sequence(row)), IsEmpty());
}

TEST(VerifyTest, NoOperationsAreNoProblem) { EXPECT_THAT(verify_sequence({}), IsEmpty()); }

// ---- data

TEST(VerifyTest, AContributionThatIsMissingIsFound) {
  EXPECT_THAT(wrong_after(kReduce, "input[0:3]@0", "input[0:2]@0"),
              has("rank 1, step 3", "ends with finish(reduce(in_0[0], in_1[0])) at output[0]"));
}

TEST(VerifyTest, AContributionThatIsThereTwiceIsFound) {
  EXPECT_THAT(wrong_after(kStaged,
                          "move stage[0:2]@0 -> output[1]@0 x8",
                          "move input[1]@0, stage[0:2]@0 -> output[1]@0 x8"),
              has("rank 1, step 6", "ends with finish(reduce(in_1[0], in_0[0], in_1[0]))"));
}

TEST(VerifyTest, AContributionFromTheWrongIndexIsFound) {
  EXPECT_THAT(wrong_after(kRing,
                          "move wire[1]@2, input[2]@4 -> output[2]@4",
                          "move wire[1]@2, input[2]@3 -> output[2]@4"),
              has("rank 2, step 8", "at output[4]"));
}

TEST(VerifyTest, AResultAtTheWrongPlaceIsFound) {
  EXPECT_THAT(wrong_after(kAllGather, "wire[0]@0 -> output[1]@0 x3", "wire[0]@0 -> output[1]@2 x3"),
              has("rank 1, step 3",
                  "ends with nothing at output[0], which should come from index 0 "
                  "of rank 0's input"));
}

TEST(VerifyTest, AResultThatIsTooShortIsFound) {
  EXPECT_THAT(
      wrong_after(kStagedBroadcast, "stage[0]@0 -> output[2]@0 x7", "stage[0]@0 -> output[2]@0 x6"),
      has("rank 2, step 3", "ends with nothing at output[6]"));
}

TEST(VerifyTest, AReductionThatIsNotFinishedIsFound) {
  EXPECT_THAT(wrong_after(kReduce, "x5 finish", "x5"),
              has("rank 1, step 3", "ends with reduce(in_0[0], in_1[0], in_2[0])"));
}

TEST(VerifyTest, AReductionThatIsFinishedTwiceIsFound) {
  EXPECT_THAT(
      wrong_after(
          kRing, "move wire[2]@4 -> output[0]@4 x2", "move wire[2]@4 -> output[0]@4 x2 finish"),
      has("rank 0, step 8", "ends with finish(finish("));
}

TEST(VerifyTest, AReductionThatIsFinishedHalfwayIsFound) {
  EXPECT_THAT(wrong_after(kRing,
                          "move wire[2]@0, input[0]@2 -> output[0]@2 x2",
                          "move wire[2]@0, input[0]@2 -> output[0]@2 x2 finish"),
              has("rank 1, step 8", "ends with finish(reduce(finish("));
}

TEST(VerifyTest, ARankThatReducesInAnotherOrderEndsWithOtherBits) {
  EXPECT_THAT(wrong_after(kStaged,
                          "move stage[0:2]@0 -> output[1]@0 x8",
                          "move stage[1]@0, stage[0]@0 -> output[1]@0 x8"),
              has("rank 1, step 6", "not the same bits"));
}

TEST(VerifyTest, AReductionThatRoundsInBetweenEndsWithOtherBits) {
  // (in_0 op in_1) op in_2 by one rank in one step, by the others in two.
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
                              " move output[2]@0, input[2]@0 -> output[2]@0 x4 finish\n")),
              has("rank 2", "not the same bits"));
}

TEST(VerifyTest, AnOperationThatMovesMustNotReduce) {
  EXPECT_THAT(
      wrong_after(kBroadcast, "wire[1]@0 -> output[0]@0 x7", "wire[1]@0 -> output[0]@0 x7 finish"),
      has("rank 0, step 0", "nothing is finished"));
}

TEST(VerifyTest, ReadingWhatNobodyWroteIsFound) {
  EXPECT_THAT(
      wrong_after(kStaged, "move input[1]@0 -> stage[1]@0 x8", "move input[1]@0 -> stage[1]@0 x7"),
      has("rank 1, step 4", "reads stage[1]@0 x8, where nobody has written"));
}

TEST(VerifyTest, AStoreThatNobodyReadsIsFound) {
  EXPECT_THAT(
      wrong_after(kStaged,
                  "rank 1 stage=8 span=2\n",
                  "rank 1 stage=8 span=2\n  wait [0] 0\n  move input[1]@1 -> stage[1]@0 x7\n"),
      has("rank 1, step 1", "stores to stage[1] what nobody reads before step 3"));
  EXPECT_THAT(wrong_after(kReduce,
                          "  move input[0:3]@0 -> output",
                          "  move input[1]@0 -> output[1]@0 x5\n  move input[0:3]@0 -> output"),
              has("rank 1, step 1", "stores to output[1] what nobody reads"));
}

// ---- order

TEST(VerifyTest, ReadingAnInputThatMayNotBeThereYetIsFound) {
  EXPECT_THAT(wrong_after(kReduce, "  wait [0:4:2] 1\n", "  wait [2] 1\n"),
              has("rank 1, step 1", "in no order with the user of rank 0"));
  EXPECT_THAT(wrong_after(kReduce, "  wait [0:4:2] 1\n", "  wait [0] 1\n"),
              has("rank 1, step 1", "touches input[2]@0 x5, whose rank need not have begun"));
}

TEST(VerifyTest, LeavingAnOperationWhilePeersReadIsFound) {
  EXPECT_THAT(
      wrong_after(
          kReduce, "rank 2 span=1\n  signal 1\n  wait [1] 1\n", "rank 2 span=1\n  signal 1\n"),
      has("rank", "in no order with"));
  EXPECT_THAT(wrong_after(kDirect, "  wait [1] 2\n", ""), has("rank", "in no order with"));
}

TEST(VerifyTest, ASourceThatIsOverwrittenBeforeItIsSentIsFound) {
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

TEST(VerifyTest, ASourceMayBeOverwrittenOnceItsReceiverHasAnswered) {
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

TEST(VerifyTest, TwoRanksThatWriteOnePlaceInNoOrderAreFound) {
  EXPECT_THAT(wrong_after(kDirect,
                          "move input[0:2]@4 -> output[0:2]@4 x4",
                          "move input[0:2]@3 -> output[0:2]@3 x5"),
              has("rank 0, step 2", "in no order with the write of rank 1 at step 2"));
}

TEST(VerifyTest, UsingTheStageBeforeAnEarlierOperationHasLeftItIsFound) {
  EXPECT_THAT(wrong_after(kStagedBroadcast, "  wait [1:3] 0\n", "  wait [1] 0\n"),
              has("rank 0, step 1",
                  "writes stage[0]@0 x7, in no order with an earlier operation of rank 2"));
}

TEST(VerifyTest, SayingTooEarlyThatTheStageIsFreeIsFound) {
  EXPECT_THAT(wrong_after(kStagedBroadcast,
                          "  move stage[0]@0 -> output[2]@0 x7\n  signal 1\n",
                          "  signal 1\n  move stage[0]@0 -> output[2]@0 x7\n"),
              has("rank 2, step 2", "touches the stage of rank 0, and no signal after it says so"));
}

TEST(VerifyTest, PushingIntoAStageWhoseOwnerHasNotBegunIsFound) {
  EXPECT_THAT(wrong_after(kPushed, "  wait [0] 1\n", "  wait [0] 0\n"),
              has("rank 1, step 2",
                  "writes stage[0]@0 x4, in no order with an earlier operation of rank 0"));
}

TEST(VerifyTest, ASequenceIsRefusedWhereOperationsMeet) {
  // Alone each is refused for what might come before; in a row it does come.
  const std::string hasty = changed(kStagedBroadcast, "  wait [1:3] 0\n", "  wait [1] 0\n");
  const Schedule row[] = {parse_schedule(kStagedBroadcast), parse_schedule(hasty)};
  EXPECT_THAT(words(verify_sequence(row)),
              has("operation 1, rank 0, step 1",
                  "in no order with the read of rank 2 at step 1 of operation 0"));
}

TEST(VerifyTest, SequencesAreOfOneGroup) {
  const Schedule row[] = {parse_schedule(kDirect), parse_schedule(kReduce)};
  EXPECT_THAT(words(verify_sequence(row)),
              has("operation 1, rank 0", "not an operation of the same group"));
}

TEST(VerifyTest, ABarrierThatSomebodyCanPassAloneIsFound) {
  EXPECT_THAT(wrong_after(kBarrier, "  wait [0:4:2] 1\n", "  wait [0] 1\n"),
              has("rank 1, step 2", "leaves the barrier, which rank 2 need not have entered"));
}

// ---- deadlock

TEST(VerifyTest, WaitingForASignalThatNeverComesIsFound) {
  EXPECT_THAT(wrong_after(kDirect,
                          "rank 1 span=2\n  signal 1\n  wait [0] 1\n",
                          "rank 1 span=2\n  wait [0] 2\n  signal 1\n"),
              testing::AllOf(has("rank 0, step 1", "waits for ever for rank 1"),
                             has("rank 1, step 0", "waits for ever for rank 0")));
}

TEST(VerifyTest, WaitingForAMessageThatNeverComesIsFound) {
  const std::string silent = changed(kBroadcast, "  move output[1]@0 -> wire[2]@0 x7\n", "");
  EXPECT_THAT(wrong_with(silent), has("rank 2, step 0", "waits for ever for a message of rank 1"));
}

// ---- messages

TEST(VerifyTest, AMessageOfAnotherSizeIsFound) {
  EXPECT_THAT(
      wrong_after(kBroadcast, "wire[1]@0 -> output[2]@0 x7", "wire[1]@0 -> output[2]@0 x6"),
      has("rank 2, step 0", "receives 6 elements at 0 from rank 1, which sends 7 at 0 at step 1"));
}

TEST(VerifyTest, APositionInTheStreamThatIsNotTheNextIsFound) {
  EXPECT_THAT(
      wrong_after(kRing, "move output[1]@4 -> wire[2]@2 x2", "move output[1]@4 -> wire[2]@3 x2"),
      has("rank 1, step 2", "sends as position 3 what is at 2 of the stream to rank 2"));
  EXPECT_THAT(
      wrong_after(kRing, "move wire[0]@4 -> output[1]@0 x2", "move wire[0]@5 -> output[1]@0 x2"),
      has("rank 1, step 5", "receives 2 elements at 5 from rank 0, which sends 2 at 4"));
}

TEST(VerifyTest, AMessageThatIsNotReceivedIsFound) {
  EXPECT_THAT(wrong_after(kBroadcast,
                          "  move input[1]@0 -> wire[0]@0 x7\n",
                          "  move input[1]@0 -> wire[0]@0 x7\n  move input[1]@0 -> wire[0]@7 x7\n"),
              has("rank 1, step 1", "sends to rank 0 what is not received"));
}

// ---- memory that a rank may not touch

TEST(VerifyTest, MemoryThatIsNotRegisteredIsNotTouchedByOthers) {
  EXPECT_THAT(wrong_after(kDirect, " registered", ""),
              has("rank 0, step 2", "input of rank 1 is not registered"));
}

TEST(VerifyTest, MemoryAndCountersOfAnotherHostAreNotTouched) {
  EXPECT_THAT(wrong_after(kDirect, "per_host=2", "per_host=1"),
              testing::AllOf(has("rank 0, step 2", "input of rank 1 is on another host"),
                             has("rank 0, step 1", "the counter of rank 1 is on another host")));
}

TEST(VerifyTest, SlicesOutsideOfTheirMemoryAreFound) {
  EXPECT_THAT(
      wrong_after(kGather, "wire[0]@0 -> output[1]@0", "wire[0]@0 -> output[1]@5"),
      has("rank 1, step 0", "3 elements at 5 are not inside the 7 elements of rank 1's output"));
  EXPECT_THAT(wrong_after(kGather, "input[0]@0 -> wire", "input[0]@-1 -> wire"),
              has("rank 0, step 0", "not inside"));
  EXPECT_THAT(wrong_after(kStaged, "stage[1]@0 x8", "stage[1]@1 x8"),
              has("rank 1, step 1", "not inside the 8 elements of rank 1's stage"));
}

TEST(VerifyTest, AnInputIsNeverWritten) {
  EXPECT_THAT(wrong_after(kGather, "wire[0]@0 -> output[1]@0 x3", "wire[0]@0 -> input[1]@0 x3"),
              has("rank 1, step 0", "an input is not written"));
}

TEST(VerifyTest, AStageBeyondTheLimitIsFound) {
  EXPECT_THAT(wrong_after(kStaged, "stage_limit=8", "stage_limit=7"),
              has("rank 0, step 6", "a stage of 8 elements is not between 0 and the limit 7"));
}

// ---- canonical form

TEST(VerifyTest, NumbersThatCouldOverflowAreRefused) {
  EXPECT_THAT(wrong_with("broadcast ranks=1 stage_limit=9223372036854775807\n"
                         "rank 0 stage=9223372036854775807\n"),
              has("rank 0, step 0", "a stage of 9223372036854775807 elements"));
  EXPECT_THAT(wrong_with("barrier ranks=1\nrank 0 span=9223372036854775807\n"
                         " signal 9223372036854775807\n"),
              has("rank 0, step 1", "a span of 9223372036854775807 is too long"));
}

TEST(VerifyTest, RanksAgreeAboutStageAndSpan) {
  EXPECT_THAT(wrong_after(kStaged, "rank 1 stage=8 span=2", "rank 1 stage=8 span=3"),
              has("rank 1, step 6", "stage 8 and span 3 are not rank 0's 8 and 2"));
}

TEST(VerifyTest, SignalsAscendToTheSpan) {
  EXPECT_THAT(wrong_after(kReduce, "x5 finish\n  signal 1\n", "x5 finish\n"),
              has("rank 1, step 2", "the last signal is 0, and the span 1"));
  EXPECT_THAT(
      wrong_after(kReduce, "x5 finish\n  signal 1\n", "x5 finish\n  signal 1\n  signal 1\n"),
      has("rank 1, step 4", "signal 1 comes after signal 1"));
  EXPECT_THAT(wrong_after(kReduce, "x5 finish\n  signal 1\n", "x5 finish\n  signal 2\n"),
              has("rank 1, step 2", "signal 2 is not between 1 and the span 1"));
}

TEST(VerifyTest, AWaitThatAddsNoOrderIsFound) {
  EXPECT_THAT(wrong_after(kReduce, "  wait [0:4:2] 1\n", "  wait [0:4:2] 1\n  wait [2] 1\n"),
              has("rank 1, step 1", "waits for rank 2 to reach 1, and knows already that it has"));
  EXPECT_THAT(wrong_after(kReduce, "  wait [0:4:2] 1\n", "  wait [0:4:2] 1\n  wait [2] -1\n"),
              has("rank 1, step 1", "a wait for -1 is not between 0 and the span 1"));
}

TEST(VerifyTest, AWaitListsTheOwnRankOnlyInItsMiddle) {
  EXPECT_THAT(wrong_after(kBarrier, "wait [0:4:2] 1", "wait [0:3] 1"), IsEmpty());
  EXPECT_THAT(wrong_after(kBarrier, "wait [1:3] 1", "wait [0:3] 1"),
              has("rank 0, step 1", "a wait for oneself"));
  EXPECT_THAT(wrong_after(kBarrier, "wait [0:2] 1", "wait [0:3] 1"),
              has("rank 2, step 1", "a wait for oneself"));
  EXPECT_THAT(
      wrong_after(kBarrier, "  signal 1\n  wait [0:4:2] 1\n", "  wait [0:3] 1\n  signal 1\n"),
      has("rank 1, step 0", "waits for ever for rank 1 to reach 1"));
}

TEST(VerifyTest, MovesAreInCanonicalForm) {
  const auto wrong = [](std::string_view move) {
    return wrong_with(
        "all_reduce ranks=2 per_host=2 count=8 stage_limit=8 in_place registered\n"
        "rank 0 stage=8\n" +
        std::string(move) + "\nrank 1 stage=8\n");
  };
  const auto says = [](std::string_view what) { return has("rank 0, step 0", what); };
  EXPECT_THAT(wrong("move input[0]@0 -> stage[0]@0 x0"), says("a move of nothing"));
  EXPECT_THAT(wrong("move input[0:2:2]@0 -> stage[0]@0 x1"), says("not in canonical form"));
  EXPECT_THAT(wrong("move input[0:0]@0 -> stage[0]@0 x1"), says("not in canonical form"));
  EXPECT_THAT(wrong("move input[1:3]@0 -> stage[0]@0 x1"),
              says("ranks 1 to 2 are not all in the group"));
  EXPECT_THAT(wrong("move input[0]@0 -> stage[1]@0, stage[0]@0 x1"),
              says("not in ascending order"));
  EXPECT_THAT(wrong("move input[0]@0 -> stage[0]@0, stage[0]@1 x2"), says("two targets overlap"));
  EXPECT_THAT(wrong("move input[0]@1 -> output[0]@0 x2"), says("a source and a target overlap"));
  EXPECT_THAT(wrong("move input[0]@1 -> output[0]@1 x2"), says("a copy onto itself"));
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

TEST(VerifyTest, MovesFromOrToNowhereAreFound) {
  Schedule schedule = parse_schedule(kGather);
  schedule.parts[0].steps[0] = schedule::Move{.count = Elements(3)};
  EXPECT_THAT(words(verify(schedule)), has("rank 0, step 0", "a move from nowhere"));
  schedule.parts[0].steps[0] = schedule::Move{.from = {{}}, .count = Elements(3)};
  EXPECT_THAT(words(verify(schedule)), has("rank 0, step 0", "a move to nowhere"));
}

TEST(VerifyTest, ProblemsThatMakeNoSenseAreFound) {
  EXPECT_THAT(wrong_with("barrier ranks=0"), has("rank 0, step 0", "0 ranks, 1 on a host"));
  EXPECT_THAT(wrong_with("barrier ranks=1"), has("rank 0, step 0", "0 parts for 1 ranks"));
  EXPECT_THAT(wrong_with("barrier ranks=1 root=1\nrank 0"),
              has("rank 0, step 0", "the root is rank 1 of 1"));
  EXPECT_THAT(wrong_with("all_to_all ranks=1 in_place\nrank 0"),
              has("rank 0, step 0", "cannot be in place"));
  EXPECT_THAT(wrong_with("gather ranks=1 counts=1,2\nrank 0"),
              has("rank 0, step 0", "2 counts for 1 ranks"));
  EXPECT_THAT(wrong_with("reduce ranks=1 counts=1\nrank 0"),
              has("rank 0, step 0", "one count, not many"));
  EXPECT_THAT(wrong_with("reduce ranks=1 count=-1\nrank 0"), has("rank 0, step 0", "negative"));
  EXPECT_THAT(wrong_with("gather ranks=2 counts=9223372036854775807,1\nrank 0\nrank 1"),
              has("rank 0, step 0", "too many"));
  Schedule schedule = parse_schedule("barrier\nrank 0");
  schedule.problem.operation = Operation::kSend;
  EXPECT_THAT(words(verify(schedule)), has("rank 0, step 0", "send has no schedule"));
}

// ---- anything at all

TEST(VerifyTest, AnExpressionThatDoublesWithEachStepTakesNoLonger) {
  std::string text = "all_reduce ranks=1 count=4\nrank 0\nmove input[0]@0 -> output[0]@0 x4\n";
  for (int i = 0; i < 200; ++i) text += "move output[0]@0, output[0]@0 -> output[0]@0 x4\n";
  EXPECT_THAT(wrong_with(text + "move output[0]@0 -> output[0]@0 x4 finish\n"),
              has("rank 0, step 202", "ends with finish(reduce(reduce("));
}

TEST(VerifyTest, SchedulesOfAnyNumbersAreJudged) {
  std::mt19937 random(1);
  const auto below = [&](std::size_t end) { return random() % end; };
  int accepted = 0;
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text(kRight[below(std::size(kRight))].second);
    for (std::size_t changes = 1 + below(4); changes > 0;) {
      char& letter = text[below(text.size())];
      if (letter < '0' || letter > '9') continue;
      letter = static_cast<char>('0' + below(10));
      --changes;
    }
    try {
      ++(wrong_with(text).empty() ? accepted : refused);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage) << text;
    }
  }
  EXPECT_GT(accepted, 10);
  EXPECT_GT(refused, 1000);
}

TEST(VerifyTest, ManyViolationsAreCutShort) {
  std::string text = "barrier ranks=1\nrank 0\n";
  for (int i = 0; i < 1000; ++i) text += "move input[0]@0 -> output[0]@0 x1\n";
  EXPECT_LE(wrong_with(text).size(), 20u);
}

}  // namespace
}  // namespace peal::verify
