#include "peal/named/pending_operations.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/named/stall_messages.h"

namespace peal::named {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

OperationPtr operation_named(std::string name) {
  Request request;
  request.name = std::move(name);
  return std::make_shared<Operation>(std::move(request), Memory());
}

/// Collects the notes as lines.
class WrittenNotes final : public FlightNotes {
 public:
  explicit WrittenNotes(std::vector<std::string>& lines) : lines_(lines) {}
  Place submitted(std::string_view text) noexcept override {
    lines_.push_back("submitted " + std::string(text));
    return static_cast<Place>(lines_.size());
  }
  void started(Place place) noexcept override {
    lines_.push_back(fmt::format("started {}", place));
  }
  void ended(Place place, Ending ending) noexcept override {
    lines_.push_back(fmt::format("{} {}", ending == Ending::kWell ? "ended" : "failed", place));
  }
  void group_is_background() noexcept override {}

 private:
  std::vector<std::string>& lines_;
};

TEST(PendingOperationsTest, OnlyOperationsOfTheAgreementRun) {
  PendingOperations pending(nullptr);
  const OperationPtr x = operation_named("x");
  pending.add({&x, 1});
  // As of another thread while this rank has joined: the other ranks run their "x" without it.
  EXPECT_EQ(pending.agreed("x"), nullptr);
  pending.complete("x", nullptr);
  EXPECT_FALSE(x->is_completed());
  EXPECT_THAT(pending.take_incoming(), ElementsAre(x));
  EXPECT_FALSE(pending.has_incoming());
  EXPECT_EQ(pending.agreed("x"), x.get());
  pending.complete("x", nullptr);
  EXPECT_TRUE(x->is_completed());
  EXPECT_TRUE(pending.empty());
}

TEST(PendingOperationsTest, ANameInFlightAddsNothing) {
  PendingOperations pending(nullptr);
  const OperationPtr x = operation_named("x");
  pending.add({&x, 1});
  const std::vector<OperationPtr> more = {operation_named("y"), operation_named("x")};
  EXPECT_THROW(pending.add(more), Error);
  EXPECT_THAT(pending.take_incoming(), SizeIs(1));
  const OperationPtr y = operation_named("y");
  pending.add({&y, 1});
}

TEST(PendingOperationsTest, TheFlightRecordFollowsEachOperation) {
  std::vector<std::string> lines;
  PendingOperations pending(std::make_shared<WrittenNotes>(lines));
  const std::vector<OperationPtr> both = {operation_named("a"), operation_named("allreduce.b")};
  pending.add(both);
  pending.started("a");  // not yet in the agreement
  pending.take_incoming();
  pending.started("a");
  pending.complete("a", nullptr);
  pending.join();
  pending.fail(Error(ErrorKind::kPeerLost, "rank 2 was lost"));
  EXPECT_THAT(lines,
              ElementsAre("submitted allreduce \"a\"",
                          "submitted allreduce \"b\"",
                          "started 1",
                          "ended 1",
                          "submitted join()",
                          "failed 2",
                          "failed 5"));
  try {
    std::rethrow_exception(both[1]->error());
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "peer_lost: allreduce \"b\" failed: rank 2 was lost");
    EXPECT_EQ(error.details().operation, "allreduce \"b\"");
  }
}

TEST(PendingOperationsTest, ANewJoinBeginsAfterTheLastOne) {
  PendingOperations pending(nullptr);
  pending.join();
  EXPECT_TRUE(pending.take_join());
  pending.join();  // of another thread
  EXPECT_FALSE(pending.take_join());
  EXPECT_EQ(pending.standing({"x"}).join, Standing::Join::kJoined);
  pending.all_have_joined();
  EXPECT_EQ(pending.standing({"x"}).join, Standing::Join::kNotJoined);
  pending.join();
  EXPECT_TRUE(pending.take_join());
}

TEST(PendingOperationsTest, AQuestionHasTheBeginningOfALongName) {
  PendingOperations pending(nullptr);
  const OperationPtr longest = operation_named(std::string(1000, 'x'));
  pending.add({&longest, 1});
  const std::string beginning(kLongestNameOfQuestion, 'x');
  EXPECT_EQ(pending.standing({"y", beginning, "x"}).has, 0b010U);
  EXPECT_THAT(pending.stalled(Clock::now() + std::chrono::seconds(1), Duration(0)).names,
              SizeIs(1));
}

}  // namespace
}  // namespace peal::named
