#include "peal/observe/named_waits.h"

#include <array>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/observe/flight_layout.h"
#include "peal/observe/testing/flights.h"
#include "peal/observe/transient_operations.h"

namespace peal::observe {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

RankEnd running(Rank rank) { return end_of(rank, RankEnd::State::kRuns, 0, ""); }

TEST(NamedWaits, NameTheRankThatHasNotSubmittedAnOperation) {
  const std::array<Flight, 3> flights = {
      FlightOf(0, 3).submitted("allreduce \"x\"", 10),
      FlightOf(1, 3).submitted("allreduce \"w\"", 1, 2).submitted("allreduce \"y\"", 20),
      FlightOf(2, 3).submitted("allreduce \"x\"", 11)};
  const std::array<RankEnd, 1> ends = {running(1)};
  const Diagnosis diagnosis = diagnose(flights, ends);
  EXPECT_EQ(diagnosis.cause, Diagnosis::Cause::kMissing);
  EXPECT_THAT(diagnosis.ranks, ElementsAre(1));
  EXPECT_THAT(diagnosis.sentence,
              StartsWith("Rank 1 has not submitted allreduce \"x\" of the group world, for which "
                         "ranks 0 and 2 wait since 12:00:00.010000: it has allreduce \"y\" in "
                         "flight, and its process still runs"));
  EXPECT_THAT(diagnosis.evidence, Contains(HasSubstr("in flight by name: allreduce \"y\"")));
}

TEST(NamedWaits, RanksInJoinAreNotMissing) {
  const std::array<Flight, 3> flights = {FlightOf(0, 3).submitted("allreduce \"x\"", 10),
                                         FlightOf(1, 3).submitted("join()", 5),
                                         FlightOf(2, 3)};
  EXPECT_THAT(diagnose(flights, {}).ranks, ElementsAre(2));
}

TEST(NamedWaits, ARankWhoseRecordIsFullIsNotMissing) {
  FlightOf full(0, 3);
  for (std::size_t i = 0; i < kNames; ++i) full.submitted(fmt::format("allreduce \"{}\"", i), 10);
  const std::array<Flight, 3> flights = {
      full, FlightOf(1, 3).submitted("allreduce \"x\"", 5), FlightOf(2, 3)};
  EXPECT_THAT(diagnose(flights, {}).ranks, ElementsAre(2));
}

TEST(NamedWaits, NothingIsMissingIfAllRanksHaveTheOperation) {
  const std::array<Flight, 2> flights = {FlightOf(0, 2).submitted("allreduce \"x\"", 10),
                                         FlightOf(1, 2).submitted("allreduce \"x\"", 10)};
  EXPECT_EQ(named_wait(JobView(flights, {})), std::nullopt);
}

TEST(NamedWaits, OperationsThatHaveJustBegunAreIgnored) {
  const std::vector<Flight> before = {FlightOf(0, 2).submitted("a", 10)};
  std::vector<Flight> now = {FlightOf(0, 2).submitted("a", 10).submitted("b", 20)};
  drop_transient_operations(before, now);
  ASSERT_EQ(now[0].names.size(), 1U);
  EXPECT_EQ(now[0].names[0].text, "a");
}

TEST(NamedWaits, TheSentenceShowsTheOperationsOfADeadRank) {
  const std::array<Flight, 2> flights = {
      FlightOf(0, 2).did(Operation::kAllReduce, 10, 0).waited(5, 1).submitted("allreduce \"x\"", 9),
      FlightOf(1, 2)
          .did(Operation::kAllReduce, 10, 0)
          .submitted("allreduce \"x\"", 9)
          .submitted("allreduce \"y\"", 9)};
  const std::array<RankEnd, 1> ends = {
      end_of(1, RankEnd::State::kKilled, 20, "was killed by SIGKILL")};
  EXPECT_THAT(diagnose(flights, ends).sentence,
              StartsWith("The process of rank 1 was killed by SIGKILL, in the middle of allreduce "
                         "\"x\", allreduce \"y\" of the group world, while rank 0 waited for it"));
}

TEST(NamedWaits, ADeadRankMayHaveBeenBetweenTwoAgreements) {
  const std::array<Flight, 1> flights = {
      FlightOf(0, 2).did(Operation::kAllReduce, 10, 11).submitted("allreduce \"x\"", 9)};
  const std::array<RankEnd, 1> ends = {
      end_of(0, RankEnd::State::kKilled, 20, "was killed by SIGKILL")};
  const Diagnosis diagnosis = diagnose(flights, ends);
  EXPECT_EQ(diagnosis.sentence,
            "The process of rank 0 was killed by SIGKILL, with allreduce \"x\" in flight.");
  EXPECT_THAT(diagnosis.evidence[0],
              HasSubstr("last finished an agreement on operations by name of the group world"));
}

TEST(NamedWaits, OperationsOfBackgroundGroupsAreIgnored) {
  Flight flight = FlightOf(0, 2).is_in_message(Operation::kRecv, kAnySource, 10);
  const std::array<Flight, 1> blocked = {flight};
  EXPECT_NE(JobView(blocked, {}).unfinished(0), nullptr);
  flight.groups[0].use = FlightGroup::Use::kBackground;
  const std::array<Flight, 1> background = {flight};
  EXPECT_EQ(JobView(background, {}).unfinished(0), nullptr);
}

}  // namespace
}  // namespace peal::observe
