// What ranks that are blocked tell each other, and what comes of it.
#include "peal/engine/standing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"

namespace peal::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Judgement = History::Judgement;

/// Enters an operation whose `detail` follows from those before it, as the engine's does.
void enter(History& history, Operation operation, std::int64_t count = 8) {
  const Fingerprint before = history.last();
  Fingerprint& entered = history.next();
  entered = {.sequence = before.sequence + 1, .operation = operation, .count = Elements(count)};
  entered.detail = mixed(before.detail, digest(entered));
}

void enter_many(History& history, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) enter(history, Operation::kAllReduce);
}

TEST(StandingTest, WhatIsEncodedIsDecodedTheSame) {
  History history;
  enter(history, Operation::kBroadcast, 1);
  enter(history, Operation::kGather, 77);
  const Standing standing = history.standing();
  EXPECT_EQ(Standing::decode(standing.encode()), standing);
  const auto bytes = standing.encode();
  EXPECT_FALSE(Standing::decode(std::span(bytes).first(bytes.size() - 1)));
  EXPECT_FALSE(Standing::decode({}));
}

TEST(HistoryTest, RanksThatDidTheSameAgreeHoweverFarOneIsAhead) {
  History own, theirs;
  enter_many(own, 100);
  for (std::size_t entered = 1; entered <= 300; ++entered) {
    enter_many(theirs, 1);
    EXPECT_EQ(own.judge(0, 1, theirs.standing()),
              entered > 100 ? Judgement::kTooSoon : Judgement::kAgrees);
  }
}

TEST(HistoryTest, AnotherOperationIsAMismatchThatShowsBoth) {
  History own, theirs;
  enter(own, Operation::kReduce);
  enter(theirs, Operation::kBroadcast);
  const Error error = error_of([&] { own.judge(0, 1, theirs.standing()); });
  EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("rank 0 in reduce #1"), HasSubstr("rank 1 in broadcast #1")));
}

TEST(HistoryTest, WhoHasGoneOnStillKnowsWhatItDidThere) {
  History own, theirs;
  enter(own, Operation::kReduce);
  enter_many(own, History::kLength - 1);
  enter(theirs, Operation::kBroadcast);
  EXPECT_EQ(error_of([&] { own.judge(0, 1, theirs.standing()); }).kind(), ErrorKind::kMismatch);
  enter_many(own, 1);
  EXPECT_EQ(own.judge(0, 1, theirs.standing()), Judgement::kAgrees) << "it is too long ago";
}

TEST(HistoryTest, APeerThatWentOnAfterSomethingElseIsAMismatchBeforeThisRankGetsThere) {
  History own, theirs;
  enter(own, Operation::kReduce);
  enter(theirs, Operation::kBroadcast);
  enter(theirs, Operation::kBarrier);
  const Error error = error_of([&] { own.judge(0, 1, theirs.standing()); });
  EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("barrier #2"), HasSubstr("reduce #1")));
}

TEST(HistoryTest, ARankThatHasEnteredNothingWaitsToSee) {
  History own, theirs;
  enter(theirs, Operation::kBroadcast);
  EXPECT_EQ(own.judge(0, 1, theirs.standing()), Judgement::kTooSoon);
}

}  // namespace
}  // namespace peal::engine
