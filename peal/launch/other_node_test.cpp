#include "peal/launch/other_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/launch/report.h"

namespace peal::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Node 1 of 3, with ranks 2 and 3.
LaunchOptions middle_node() {
  LaunchOptions options;
  options.ranks = 2;
  options.node = {.nodes = 3, .node = 1, .master = "m", .port = 29500};
  return options;
}

observe::Flight flight_with_error(Rank rank, ErrorKind kind, Rank named) {
  observe::Flight flight;
  flight.rank = rank;
  flight.world_size = 6;
  flight.first_error =
      observe::FlightError{.kind = kind, .text = "it is gone", .rank = named, .at = {}};
  return flight;
}

observe::Diagnosis diagnosis_of(Rank rank) {
  return {.cause = observe::Diagnosis::Cause::kError,
          .ranks = {rank},
          .sentence = "It failed.",
          .evidence = {}};
}

TEST(OtherNodeTest, ALossOfARankOfAnotherNodeIsCausedThere) {
  const std::vector flights = {flight_with_error(2, ErrorKind::kPeerLost, 5),
                               flight_with_error(3, ErrorKind::kPeerLost, 5)};
  const auto cause = cause_on_other_node(diagnosis_of(3), flights, middle_node());
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->rank, 5);
  EXPECT_EQ(cause->node, 2);
  EXPECT_EQ(cause->sentence,
            "Rank 3 failed because of rank 5, which is on node 2: peer_lost: it is gone.");
  EXPECT_THAT(cause->victims, ElementsAre(2, 3));
}

TEST(OtherNodeTest, ARankOfAnotherNodeThatTheDiagnosisNamesIsTheCause) {
  const std::vector flights = {flight_with_error(2, ErrorKind::kTimeout, 0)};
  const auto cause = cause_on_other_node(diagnosis_of(0), flights, middle_node());
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->node, 0);
  EXPECT_EQ(cause->sentence, "It failed.");
  EXPECT_THAT(cause->victims, ElementsAre(2));
}

TEST(OtherNodeTest, ARankOfThisNodeMayBeTheCause) {
  const LaunchOptions options = middle_node();
  const auto cause_if = [&](ErrorKind kind, Rank named) {
    const std::vector flights = {flight_with_error(2, kind, named)};
    return cause_on_other_node(diagnosis_of(2), flights, options).has_value();
  };
  EXPECT_TRUE(cause_if(ErrorKind::kPeerLost, 0));
  EXPECT_FALSE(cause_if(ErrorKind::kPeerLost, 3));  // on this node
  EXPECT_FALSE(cause_if(ErrorKind::kUsage, 0));
  EXPECT_FALSE(cause_on_other_node(diagnosis_of(2), {}, options));  // killed, without an error
  EXPECT_FALSE(cause_on_other_node(observe::Diagnosis(), {}, options));
}

TEST(OtherNodeTest, TheOnlyNodeHasNoOtherNode) {
  const std::vector flights = {flight_with_error(2, ErrorKind::kPeerLost, 5)};
  LaunchOptions options;
  options.ranks = 6;
  EXPECT_FALSE(cause_on_other_node(diagnosis_of(5), flights, options));
}

TEST(OtherNodeTest, TheReportSaysWhereToLook) {
  LaunchReport report;
  report.ends = {{.rank = 2, .pid = 7, .status = 3 << 8}};
  EXPECT_THAT(describe(report), Not(HasSubstr("node")));
  report.node = 1;
  report.nodes = 3;
  EXPECT_THAT(describe(report),
              HasSubstr("peal: this is node 1 of 3; the cause may be on another"));
  report.post_mortem = PostMortem{.causes = {5}, .victims = {2}, .other_node = 2};
  EXPECT_THAT(describe(report),
              HasSubstr("peal: the cause is on node 2: see the report of its launcher\n"));
}

}  // namespace
}  // namespace peal::launch
