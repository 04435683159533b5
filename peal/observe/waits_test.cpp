#include "peal/observe/waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/observe/testing/diagnoses.h"
#include "peal/observe/transient_operations.h"

namespace peal::observe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(WaitsTest, AMissingRankIsNamedWithItsLastOperation) {
  const std::vector<Flight> flights = {fails(0, 3, 900, ErrorKind::kTimeout),
                                       fails(1, 3, 901, ErrorKind::kTimeout),
                                       FlightOf(2, 3).did(kAllReduce, 10, 15)};
  const auto why = [&](const std::vector<RankEnd>& ends) { return diagnosis_of(flights, ends); };
  const Diagnosis runs = why({end_of(2, State::kRuns, 950, "")});
  EXPECT_EQ(runs.cause, Cause::kMissing);
  EXPECT_THAT(runs.ranks, ElementsAre(2));
  EXPECT_EQ(runs.sentence,
            "Rank 2 never entered all_reduce #2 (sum of 10 f32) of the group world, in which ranks "
            "0 and 1 waited: it last finished all_reduce #1 (sum of 10 f32) of the group world at "
            "12:00:00.015000, and its process still runs; rank 2 runs now.");
  EXPECT_THAT(why({end_of(2, State::kEndedWhileStopped, 950, "was stopped")}).sentence,
              HasSubstr("and its process was stopped at 12:00:00.950000."));
  EXPECT_THAT(why({end_of(2, State::kEndedWell, 500, "ended with exit code 0")}).sentence,
              HasSubstr("and its process ended with exit code 0 at"));
  EXPECT_THAT(why({}).sentence, HasSubstr("how its process ended is unknown"));
}

TEST(WaitsTest, ARankThatIsBrieflyBehindIsNotReportedAsMissing) {
  const FlightOf ahead = FlightOf(0, 2).did(kAllReduce, 10, 15);
  const FlightOf behind = FlightOf(1, 2).did(kAllReduce, 10, 15);
  const std::vector<RankEnd> run = {end_of(0, State::kRuns, 30, ""),
                                    end_of(1, State::kRuns, 30, "")};
  const std::vector<Flight> before = {FlightOf(ahead), FlightOf(behind)};
  const std::vector<Flight> waits = {FlightOf(ahead).did(kAllReduce, 20, 0), FlightOf(behind)};

  std::vector<Flight> transient = waits;
  drop_transient_operations(before, transient);
  EXPECT_EQ(diagnosis_of(transient, run).cause, Cause::kNothing);

  std::vector<Flight> standing = waits;
  drop_transient_operations(waits, standing);
  EXPECT_EQ(diagnosis_of(standing, run).cause, Cause::kMissing);
}

TEST(WaitsTest, ARankStoppedBeforeTheRendezvousIsNamed) {
  const Diagnosis why =
      diagnosis_of({FlightOf(0, 2).failed(500, ErrorKind::kTimeout, "1 of 2 ranks did not come")},
                   {end_of(1, State::kEndedWhileStopped, 950, "was stopped by a signal")});
  EXPECT_EQ(why.cause, Cause::kMissing);
  EXPECT_THAT(why.ranks, ElementsAre(1));
  EXPECT_THAT(why.sentence,
              StartsWith("Rank 1 did not reach the rendezvous: its process was stopped"));
}

TEST(WaitsTest, ARankStoppedInAnOperationIsTheCauseEvenIfOthersHaveFinishedTheOperation) {
  const RankEnd stopped = end_of(1, State::kEndedWhileStopped, 950, "was stopped by a signal");
  const auto ahead_of = [&](FlightOf rank_1) {
    return diagnosis_of({fails(0, 2, 900, ErrorKind::kTimeout), rank_1}, {stopped});
  };
  for (const Diagnosis& why : {ahead_of(FlightOf(1, 2).did(kAllReduce, 10, 0)),
                               ahead_of(FlightOf(1, 2).did(kAllReduce, 10, 0).waited(5, 0))}) {
    EXPECT_EQ(why.cause, Cause::kMissing);
    EXPECT_THAT(why.ranks, ElementsAre(1));
    EXPECT_THAT(
        why.sentence,
        StartsWith("Rank 1 did not finish all_reduce #1 (sum of 10 f32) of the group world: "
                   "its process was stopped by a signal"));
  }
}

TEST(WaitsTest, ARankStoppedWhileItWaitedIsNotTheCause) {
  const Diagnosis why =
      diagnosis_of({fails(0, 3, 900, ErrorKind::kTimeout).waited(20, 1),
                    FlightOf(1, 3).did(kAllReduce, 10, 15).did(kAllReduce, 20, 0).waited(20, 2),
                    FlightOf(2, 3).did(kAllReduce, 10, 15)},
                   {end_of(1, State::kEndedWhileStopped, 950, "was stopped by a signal")});
  EXPECT_THAT(why.ranks, ElementsAre(2));
}

TEST(WaitsTest, ARankKilledAfterTheTimeoutIsMissingAndNotLost) {
  const Diagnosis why =
      diagnosis_of({fails(0, 2, 900, ErrorKind::kTimeout), FlightOf(1, 2).did(kAllReduce, 10, 15)},
                   {end_of(1, State::kKilled, 5000, "was killed by SIGKILL")});
  EXPECT_EQ(why.cause, Cause::kMissing);
  EXPECT_THAT(why.ranks, ElementsAre(1));
}

TEST(WaitsTest, GroupsUsedInDifferentOrderAreADeadlock) {
  const Diagnosis why = diagnosis_of(
      {fails(0, 4, 900, ErrorKind::kTimeout),
       fails(1, 4, 900, ErrorKind::kTimeout),
       FlightOf(2, 4).with_pair({2, 3}).did(kAllReduce, 10, 15).did(kBarrier, 20, 0, 1),
       FlightOf(3, 4).with_pair({2, 3}).did(kAllReduce, 10, 15).did(kAllReduce, 20, 0)});
  EXPECT_EQ(why.cause, Cause::kDeadlock);
  EXPECT_THAT(why.ranks, ElementsAre(2, 3));
  EXPECT_EQ(why.sentence,
            "Ranks 2 and 3 wait for each other: rank 2 in barrier #1 of the group pair, rank 3 in "
            "all_reduce #2 (sum of 10 f32) of the group world.");
}

TEST(WaitsTest, MissingDataIsNotADeadlock) {
  const Diagnosis behind =
      diagnosis_of({FlightOf(0, 2).did(kAllReduce, 10, 15).did(kAllReduce, 20, 0),
                    FlightOf(1, 2).did(kAllReduce, 10, 0).waited(5, 0)});
  EXPECT_EQ(behind.cause, Cause::kError);
  EXPECT_EQ(
      behind.sentence,
      "Rank 1 waited in all_reduce #1 (sum of 10 f32) of the group world for rank 0, which "
      "has finished it: the data of rank 0 has not arrived, so check the network between them.");
  const Diagnosis together = diagnosis_of({FlightOf(0, 2).did(kAllReduce, 10, 0).waited(5, 1),
                                           FlightOf(1, 2).did(kAllReduce, 10, 0).waited(5, 0)});
  EXPECT_EQ(together.cause, Cause::kError);
  EXPECT_THAT(together.sentence,
              StartsWith("Ranks 0 and 1 waited for each other's data in all_reduce #1 (sum of 10 "
                         "f32) of the group world"));
}

TEST(WaitsTest, ARankThatIsBlockedInAnotherGroupIsNotToBlame) {
  const Diagnosis why = diagnosis_of(
      {fails(0, 4, 900, ErrorKind::kTimeout),
       fails(1, 4, 900, ErrorKind::kTimeout),
       FlightOf(2, 4).with_pair({2, 3}).did(kAllReduce, 10, 15).did(kBarrier, 20, 0, 1),
       FlightOf(3, 4).with_pair({2, 3}).did(kAllReduce, 10, 15)});
  EXPECT_EQ(why.cause, Cause::kMissing);
  EXPECT_THAT(why.ranks, ElementsAre(3));
}

TEST(WaitsTest, ARankThatIsStuckInAnotherGroupsOperationIsNamed) {
  const Diagnosis why =
      diagnosis_of({fails(0, 3, 900, ErrorKind::kTimeout),
                    fails(1, 3, 900, ErrorKind::kTimeout),
                    FlightOf(2, 3).with_pair({2}).did(kAllReduce, 10, 15).did(kBarrier, 20, 0, 1)});
  EXPECT_THAT(why.ranks, ElementsAre(2));
  EXPECT_THAT(why.sentence, HasSubstr("did not finish barrier #1 of the group pair"));
}

TEST(WaitsTest, TwoRanksThatReceiveFromEachOtherAreADeadlock) {
  const Diagnosis why = diagnosis_of({FlightOf(0, 2).is_in_message(Operation::kRecv, 1, 10),
                                      FlightOf(1, 2).is_in_message(Operation::kRecv, 0, 11)});
  EXPECT_EQ(why.cause, Cause::kDeadlock);
  EXPECT_EQ(why.sentence,
            "Ranks 0 and 1 wait for each other: rank 0 in recv of 10 f32 from rank 1, tag 3 of the "
            "group world, rank 1 in recv of 10 f32 from rank 0, tag 3 of the group world.");
}

TEST(WaitsTest, TwoRanksThatSendToEachOtherAreADeadlock) {
  const Diagnosis why = diagnosis_of({FlightOf(0, 2).is_in_message(Operation::kSend, 1, 10),
                                      FlightOf(1, 2).is_in_message(Operation::kSend, 0, 11)});
  EXPECT_EQ(why.cause, Cause::kDeadlock);
  EXPECT_THAT(why.sentence, HasSubstr("rank 0 in send of 10 f32 to rank 1"));
}

TEST(WaitsTest, AMissingMessageIsBlamedOnItsSender) {
  const Diagnosis why = diagnosis_of({FlightOf(0, 2).is_in_message(Operation::kRecv, 1, 10),
                                      FlightOf(1, 2).did(kAllReduce, 1, 5)});
  EXPECT_EQ(why.cause, Cause::kMissing);
  EXPECT_THAT(why.sentence, HasSubstr("Rank 1 never sent what rank 0 waited for in recv of 10"));
}

}  // namespace
}  // namespace peal::observe
