#include "peal/observe/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/observe/operation_text.h"
#include "peal/observe/testing/diagnoses.h"

namespace peal::observe {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(WhyTest, AKilledProcessIsTheCauseAndItsPeersAreNot) {
  const Diagnosis why =
      diagnosis_of({fails(0, 3, 31, ErrorKind::kPeerLost).waited(10, 1),
                    FlightOf(1, 3).did(kAllReduce, 10, 15).did(kAllReduce, 20, 0),
                    fails(2, 3, 32, ErrorKind::kPeerLost).waited(10, 1)},
                   {end_of(0, State::kEndedBadly, 40, "ended with exit code 1"),
                    end_of(1, State::kKilled, 33, "was killed by SIGKILL"),
                    end_of(2, State::kEndedByLauncher, 45, "was ended by the launcher")});
  EXPECT_EQ(why.cause, Cause::kProcessEnded);
  EXPECT_THAT(why.ranks, ElementsAre(1));
  EXPECT_EQ(
      why.sentence,
      "The process of rank 1 was killed by SIGKILL, in the middle of all_reduce #2 (sum of 10 "
      "f32) of the group world, while ranks 0 and 2 waited for it.");
  ASSERT_FALSE(why.evidence.empty());
  EXPECT_THAT(why.evidence.front(),
              AllOf(HasSubstr("rank 1 (process 101 on a): in all_reduce #2"),
                    HasSubstr("since 12:00:00.020000"),
                    HasSubstr("last finished all_reduce #1"),
                    HasSubstr("its process was killed by SIGKILL at 12:00:00.033000")));
  EXPECT_THAT(why.evidence.back(), HasSubstr("the first error on a: rank 0 at 12:00:00.031000"));
}

TEST(WhyTest, ACrashBetweenOperationsNamesTheLastOperation) {
  const Diagnosis why =
      diagnosis_of({fails(0, 2, 31, ErrorKind::kPeerLost), FlightOf(1, 2).did(kAllReduce, 10, 15)},
                   {end_of(1, State::kKilled, 30, "was killed by SIGSEGV")});
  EXPECT_EQ(why.sentence,
            "The process of rank 1 was killed by SIGSEGV, after all_reduce #1 (sum of 10 f32) of "
            "the group world, while rank 0 waited for it.");
}

TEST(WhyTest, TheAbortingRankIsTheCauseAndItsPeersAreNot) {
  const std::string text = "the group world was aborted by rank 1: my data is bad";
  const Diagnosis why = diagnosis_of({FlightOf(0, 3)
                                          .did(kAllReduce, 10, 15)
                                          .failed(32, ErrorKind::kAborted, text)
                                          .because_of(1, ErrorCause::kAborted, "my data is bad")
                                          .left(Departure::kNormal, 33),
                                      FlightOf(1, 3)
                                          .did(kAllReduce, 10, 15)
                                          .failed(30, ErrorKind::kAborted, text)
                                          .because_of(1, ErrorCause::kAborted, "my data is bad")
                                          .left(Departure::kNormal, 31),
                                      FlightOf(2, 3)
                                          .did(kAllReduce, 10, 15)
                                          .failed(32, ErrorKind::kAborted, text)
                                          .because_of(1, ErrorCause::kAborted, "my data is bad")
                                          .left(Departure::kNormal, 33)},
                                     {});
  EXPECT_THAT(why.ranks, ElementsAre(1));
  EXPECT_THAT(
      why.sentence,
      StartsWith("Rank 1 aborted the group world: \"my data is bad\", after all_reduce #1 "));
}

TEST(WhyTest, AnInterruptedRankIsTheCauseWithItsReason) {
  const auto interrupted = [](Rank rank, int at) {
    return FlightOf(rank, 2)
        .did(kAllReduce, 10, 15)
        .failed(at, ErrorKind::kAborted, "rank 1 was interrupted: KeyboardInterrupt")
        .because_of(1, ErrorCause::kInterrupted, "KeyboardInterrupt");
  };
  const Diagnosis why = diagnosis_of({interrupted(0, 31), interrupted(1, 30)}, {});
  EXPECT_EQ(why.cause, Cause::kException);
  EXPECT_THAT(why.ranks, ElementsAre(1));
  EXPECT_THAT(why.sentence, StartsWith("Rank 1 was interrupted: \"KeyboardInterrupt\", after "));
}

TEST(WhyTest, ARankThatLeavesWithCollectivesInFlightIsTheCauseThoughItWaitedForOthers) {
  const std::string text = "the group world was destroyed on rank 1 while collectives were running";
  const Diagnosis why = diagnosis_of({FlightOf(0, 2)
                                          .did(kAllReduce, 10, 15)
                                          .failed(32, ErrorKind::kPeerLost, "rank 1 has left")
                                          .because_of(1, ErrorCause::kLeft),
                                      FlightOf(1, 2)
                                          .failed_in(kAllReduce, 20, 30, ErrorKind::kTimeout, text)
                                          .because_of(1, ErrorCause::kLeft)},
                                     {});
  EXPECT_THAT(why.ranks, ElementsAre(1));
  EXPECT_THAT(why.sentence, StartsWith("Rank 1 ended its group: " + text));
}

TEST(WhyTest, ALossNoticedBetweenOperationsDoesNotCountAsLeavingTooEarly) {
  const Diagnosis why = diagnosis_of({fails(0, 2, 31, ErrorKind::kPeerLost),
                                      FlightOf(1, 2)
                                          .did(kAllReduce, 10, 15)
                                          .failed(30, ErrorKind::kPeerLost, "the link is damaged")
                                          .left(Departure::kNormal, 32)},
                                     {});
  EXPECT_THAT(why.sentence,
              HasSubstr("Rank 1 was the first to fail: peer_lost: the link is damaged"));
}

FlightOf lost_connection(Rank rank, int ranks, Rank lost, int at) {
  return FlightOf(rank, ranks)
      .did(kAllReduce, 10, 15)
      .failed(at, ErrorKind::kPeerLost, "its connection broke")
      .because_of(lost, ErrorCause::kUnknown);
}

TEST(WhyTest, NoRankIsTheCauseOfABrokenConnection) {
  // Each rank has lost the other, or rank 0 has sent rank 1 the error that rank 1 is lost.
  for (const Rank named_by_1 : {0, 1}) {
    const Diagnosis why =
        diagnosis_of({lost_connection(0, 2, 1, 30), lost_connection(1, 2, named_by_1, 31)}, {});
    EXPECT_THAT(why.ranks, IsEmpty());
    EXPECT_EQ(why.sentence,
              "The connection between ranks 0 and 1 broke: check the network between them; the "
              "error of rank 0: its connection broke.");
  }
}

TEST(WhyTest, RanksThatReceiveTheErrorAreNotAtTheEndsOfABrokenConnection) {
  const std::string_view network = "; the error of rank 2: its connection broke.";
  for (const int received_at : {29, 31}) {
    const Diagnosis why = diagnosis_of({lost_connection(0, 4, 3, received_at),
                                        lost_connection(1, 4, 3, received_at),
                                        lost_connection(2, 4, 3, 30),
                                        lost_connection(3, 4, 2, 31)},
                                       {});
    EXPECT_THAT(why.ranks, IsEmpty());
    EXPECT_EQ(why.sentence,
              "The connection between ranks 2 and 3 broke: check the network between them" +
                  std::string(network));
  }
  // Rank 3 received the error too, so nothing shows which of its connections broke.
  const Diagnosis why = diagnosis_of({lost_connection(0, 4, 3, 31),
                                      lost_connection(1, 4, 3, 31),
                                      lost_connection(2, 4, 3, 30),
                                      lost_connection(3, 4, 3, 31)},
                                     {});
  EXPECT_EQ(why.sentence,
            "A connection of rank 3 broke: check the network of its host" + std::string(network));
  // The records of one host: ranks 2 and 3 have none here.
  const Diagnosis one_host =
      diagnosis_of({lost_connection(0, 4, 0, 30), lost_connection(1, 4, 0, 31)}, {});
  EXPECT_THAT(one_host.sentence, StartsWith("A connection of rank 0 broke: "));
}

TEST(WhyTest, WithoutALauncherTheSilentRankIsTheCause) {
  const Diagnosis why =
      diagnosis_of({fails(0, 2, 31, ErrorKind::kPeerLost), FlightOf(1, 2).did(kAllReduce, 10, 15)});
  EXPECT_EQ(why.cause, Cause::kProcessEnded);
  EXPECT_THAT(why.ranks, ElementsAre(1));
  EXPECT_THAT(why.sentence, HasSubstr("rank 1 ended without a message"));
}

TEST(WhyTest, TheTextOfAnExceptionIsQuoted) {
  Flight thrower = FlightOf(1, 2).did(kAllReduce, 10, 15).left(Departure::kByException, 30);
  thrower.first_error = FlightError{.kind = ErrorKind::kPeerLost,
                                    .text = "rank 1 threw: out of luck",
                                    .rank = 1,
                                    .cause = ErrorCause::kThrew,
                                    .reason = "out of luck",
                                    .group = 0,
                                    .at = at_ms(31)};
  const Diagnosis why = diagnosis_of(
      {fails(0, 2, 32, ErrorKind::kPeerLost, "rank 1 threw: out of luck"), thrower}, {});
  EXPECT_EQ(why.cause, Cause::kException);
  EXPECT_EQ(why.sentence,
            "Rank 1 threw \"out of luck\", after all_reduce #1 (sum of 10 f32) of the group world, "
            "while rank 0 waited for it.");
}

TEST(WhyTest, ARankThatLeftByAnExceptionIsTheCauseWithItsExitCode) {
  const Diagnosis why = diagnosis_of(
      {fails(0, 2, 31, ErrorKind::kPeerLost, "rank 1 has left the group because of an exception"),
       FlightOf(1, 2).did(kAllReduce, 10, 15).left(Departure::kByException, 30)},
      {end_of(1, State::kEndedBadly, 35, "ended with exit code 3"),
       end_of(0, State::kEndedBadly, 34, "ended with exit code 1")});
  EXPECT_EQ(why.cause, Cause::kException);
  EXPECT_THAT(why.ranks, ElementsAre(1));
  EXPECT_EQ(why.sentence,
            "Rank 1 left by an exception, after all_reduce #1 (sum of 10 f32) of the group world, "
            "while rank 0 waited for it; its process ended with exit code 3.");
}

TEST(WhyTest, TheMinorityIsNamedFirstInAMismatch) {
  std::vector<Flight> flights;
  for (Rank rank = 0; rank < 4; ++rank) {
    FlightOf flight(rank, 4);
    flight.did(kAllReduce, 10, 15);
    flight.failed_in(rank == 1 ? Operation::kBroadcast : kAllReduce,
                     20,
                     30 + rank,
                     ErrorKind::kMismatch,
                     "ranks are in different operations");
    flights.push_back(flight);
  }
  const Diagnosis why = diagnosis_of(flights);
  EXPECT_EQ(why.cause, Cause::kMismatch);
  EXPECT_THAT(why.ranks, ElementsAre(1));
  EXPECT_EQ(
      why.sentence,
      "Ranks were in different operations: rank 1 was in broadcast #2 (10 f32, root 0) of the "
      "group world while ranks 0, 2 and 3 were in all_reduce #2 (sum of 10 f32) of the group "
      "world.");
}

TEST(WhyTest, DifferentCountsAreShownOnBothSides) {
  const Diagnosis why = diagnosis_of(
      {FlightOf(0, 2).did(kAllReduce, 10, 0, 0, 10), FlightOf(1, 2).did(kAllReduce, 10, 0, 0, 11)});
  EXPECT_EQ(why.cause, Cause::kMismatch);
  EXPECT_THAT(why.sentence, AllOf(HasSubstr("sum of 10 f32"), HasSubstr("sum of 11 f32")));
}

TEST(WhyTest, AMismatchThatIsNotInTheRecordQuotesTheError) {
  const Diagnosis why = diagnosis_of({fails(0, 2, 31, ErrorKind::kMismatch, "blocks differ"),
                                      fails(1, 2, 30, ErrorKind::kMismatch, "blocks differ")});
  EXPECT_EQ(why.cause, Cause::kMismatch);
  EXPECT_EQ(why.sentence, "Rank 1 was the first to fail: mismatch: blocks differ.");
}

TEST(WhyTest, TheSentenceNamesRunningAndStoppedRanksOfAnUnfinishedJob) {
  const Diagnosis hangs =
      diagnosis_of({FlightOf(0, 3).did(kAllReduce, 10, 15).did(kAllReduce, 20, 0),
                    FlightOf(1, 3).did(kAllReduce, 10, 15),
                    FlightOf(2, 3).did(kAllReduce, 10, 15).did(kAllReduce, 20, 0)},
                   {end_of(0, State::kRuns, 950, ""),
                    end_of(1, State::kStopped, 950, ""),
                    end_of(2, State::kRuns, 950, "")});
  EXPECT_THAT(hangs.ranks, ElementsAre(1));
  EXPECT_THAT(hangs.sentence,
              HasSubstr("; ranks 0 and 2 run now, rank 1 is stopped (suspended by a signal)."));
  EXPECT_THAT(hangs.evidence,
              Contains(HasSubstr("; its process is stopped (suspended by a signal)")));
  const Diagnosis works =
      diagnosis_of({FlightOf(0, 2).did(kAllReduce, 10, 15).left(Departure::kNormal, 20),
                    FlightOf(1, 2).did(kAllReduce, 10, 15)},
                   {end_of(0, State::kRuns, 30, ""), end_of(1, State::kRuns, 30, "")});
  EXPECT_EQ(works.sentence,
            "Nothing went wrong in the last 2 operations of 2 ranks; rank 1 runs now.");
}

TEST(WhyTest, AJobWhoseRanksAreAllStoppedHasNoCause) {
  const Diagnosis why =
      diagnosis_of({FlightOf(0, 2).did(kAllReduce, 10, 0), FlightOf(1, 2)},
                   {end_of(0, State::kStopped, 30, ""), end_of(1, State::kStopped, 30, "")});
  EXPECT_EQ(why.cause, Cause::kNothing);
  EXPECT_THAT(why.sentence, HasSubstr("; ranks 0 and 1 are stopped (suspended by a signal)"));
}

TEST(WhyTest, ARankThatLeavesWhileOthersContinueLeftTooEarly) {
  const Diagnosis why =
      diagnosis_of({fails(0, 2, 31, ErrorKind::kPeerLost, "rank 1 has left the group"),
                    FlightOf(1, 2).did(kAllReduce, 10, 15).left(Departure::kNormal, 30)},
                   {end_of(1, State::kEndedWell, 35, "ended with exit code 0")});
  EXPECT_EQ(why.cause, Cause::kProcessEnded);
  EXPECT_THAT(why.ranks, ElementsAre(1));
  EXPECT_THAT(why.sentence,
              HasSubstr("Rank 1 left too early: it never entered all_reduce #2 (sum of 10 f32) of "
                        "the group world, in which rank 0 waited"));
}

TEST(WhyTest, MessagesOfAMonitoredBarrierAreNamedAfterIt) {
  const OperationKind kind = {.operation = Operation::kRecv, .root = 1};
  EXPECT_EQ(describe(kind, static_cast<std::uint64_t>(-1), Elements(1)),
            "monitored_barrier with rank 1");
}

TEST(WhyTest, TheErrorOfOneRankIsQuoted) {
  const Diagnosis why = diagnosis_of({fails(0, 2, 31, ErrorKind::kPeerLost, "rank 1 is gone"),
                                      fails(1, 2, 30, ErrorKind::kResource, "no memory")});
  EXPECT_EQ(why.cause, Cause::kError);
  EXPECT_EQ(why.sentence, "Rank 1 was the first to fail: resource: no memory.");
}

TEST(WhyTest, TimesOfDifferentHostsAreNotCompared) {
  // By the clocks the timeout came first, but the clock of host b is an hour ahead.
  const Flight waits = fails(0, 2, 900, ErrorKind::kTimeout);
  const Diagnosis why =
      diagnosis_of({waits, FlightOf(1, 2, "b").did(kAllReduce, 10, 15)},
                   {end_of(1, State::kKilled, 3'600'000, "was killed by SIGKILL")});
  EXPECT_EQ(why.cause, Cause::kProcessEnded);
}

TEST(WhyTest, ASlowRankIsNamedWithItsShareOfTheWaiting) {
  const auto waits = [](Rank rank, int waited_ms) {
    return FlightOf(rank, 3)
        .did(kAllReduce, 100, 200)
        .waited(waited_ms, 2)
        .left(Departure::kNormal, 210);
  };
  const Diagnosis why =
      diagnosis_of({waits(0, 80),
                    waits(1, 70),
                    FlightOf(2, 3).did(kAllReduce, 180, 200).left(Departure::kNormal, 210)});
  EXPECT_EQ(why.cause, Cause::kStraggler);
  EXPECT_THAT(why.ranks, ElementsAre(2));
  EXPECT_EQ(why.sentence,
            "Nothing went wrong, but rank 2 is slow: the others waited 150 ms for it, 100 % of all "
            "their waiting and 68 % of the time of all ranks.");
}

TEST(WhyTest, ASuccessfulJobNamesNoRank) {
  const Diagnosis why =
      diagnosis_of({FlightOf(0, 2).did(kAllReduce, 10, 15).left(Departure::kNormal, 20),
                    FlightOf(1, 2).did(kAllReduce, 10, 15).left(Departure::kNormal, 20)},
                   {end_of(0, State::kEndedWell, 30, "ended with exit code 0"),
                    end_of(1, State::kEndedWell, 30, "ended with exit code 0")});
  EXPECT_EQ(why.cause, Cause::kNothing);
  EXPECT_THAT(why.ranks, IsEmpty());
  EXPECT_EQ(why.sentence, "Nothing went wrong in the last 2 operations of 2 ranks.");
}

TEST(WhyTest, ARankWithAnEndButNoRecordCanBeTheCause) {
  const Diagnosis why = diagnosis_of({}, {end_of(4, State::kKilled, 5, "was killed by SIGILL")});
  EXPECT_EQ(why.sentence, "The process of rank 4 was killed by SIGILL.");
  EXPECT_THAT(why.evidence, Contains(HasSubstr("rank 4: left no record")));
}

TEST(WhyTest, NoRecordsGiveNoDiagnosis) {
  EXPECT_EQ(diagnosis_of({}).sentence, "There is no record of any rank.");
}

}  // namespace
}  // namespace peal::observe
