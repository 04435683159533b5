// The messages between blocked ranks, and how a rank compares them with its operations.
#include "peal/engine/progress_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/mixed.h"
#include "peal/base/testing/error_of.h"

namespace peal::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Judgement = History::Judgement;

/// Enters an operation whose `detail` depends on the earlier operations, as in the engine.
void enter(History& history, Operation operation, std::int64_t count = 8) {
  const Fingerprint before = history.last();
  Fingerprint& entered = history.next();
  entered = {.sequence = before.sequence + 1, .operation = operation, .count = Elements(count)};
  entered.detail = mixed(before.detail, digest(entered));
}

void enter_many(History& history, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) enter(history, Operation::kAllReduce);
}

TEST(ProgressReportTest, SurvivesEncodingAndDecoding) {
  History history;
  enter(history, Operation::kBroadcast, 1);
  enter(history, Operation::kGather, 77);
  const ProgressReport report = history.report();
  EXPECT_EQ(ProgressReport::decode(report.encode()), report);
  const auto bytes = report.encode();
  EXPECT_FALSE(ProgressReport::decode(std::span(bytes).first(bytes.size() - 1)));
  EXPECT_FALSE(ProgressReport::decode({}));
}

TEST(HistoryTest, RanksWithTheSameOperationsAgreeAtAnyDistance) {
  History own, theirs;
  enter_many(own, 100);
  for (std::size_t entered = 1; entered <= 300; ++entered) {
    enter_many(theirs, 1);
    EXPECT_EQ(own.judge(0, 1, theirs.report()),
              entered > 100 ? Judgement::kTooSoon : Judgement::kAgrees);
  }
}

TEST(HistoryTest, AMismatchDescribesBothOperations) {
  History own, theirs;
  enter(own, Operation::kReduce);
  enter(theirs, Operation::kBroadcast);
  const Error error = error_of([&] { own.judge(0, 1, theirs.report()); });
  EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("rank 0 in reduce #1"), HasSubstr("rank 1 in broadcast #1")));
}

TEST(HistoryTest, RemembersRecentOperations) {
  History own, theirs;
  enter(own, Operation::kReduce);
  enter_many(own, History::kLength - 1);
  enter(theirs, Operation::kBroadcast);
  EXPECT_EQ(error_of([&] { own.judge(0, 1, theirs.report()); }).kind(), ErrorKind::kMismatch);
  enter_many(own, 1);
  EXPECT_EQ(own.judge(0, 1, theirs.report()), Judgement::kAgrees)
      << "the operation is too old to compare";
}

TEST(HistoryTest, APeerAheadWithADifferentPreviousOperationIsAMismatch) {
  History own, theirs;
  enter(own, Operation::kReduce);
  enter(theirs, Operation::kBroadcast);
  enter(theirs, Operation::kBarrier);
  const Error error = error_of([&] { own.judge(0, 1, theirs.report()); });
  EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("barrier #2"), HasSubstr("reduce #1")));
}

TEST(HistoryTest, ARankThatHasEnteredNoOperationComparesLater) {
  History own, theirs;
  enter(theirs, Operation::kBroadcast);
  EXPECT_EQ(own.judge(0, 1, theirs.report()), Judgement::kTooSoon);
}

}  // namespace
}  // namespace peal::engine
