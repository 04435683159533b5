#include "peal/rendezvous/meeting_result.h"

#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/net/socket.h"
#include "peal/store/memory_store.h"
#include "peal/store/tcp_store.h"
#include "peal/store/tcp_store_server.h"
#include "peal/store/testing/forwarding_store.h"

namespace peal::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Error kKilled(ErrorKind::kPeerLost, "rank 2 ended");
const Error kLeft(ErrorKind::kPeerLost, "rank 0 left");

TEST(MeetingResultTest, DecodeRestoresAnEncodedResult) {
  EXPECT_FALSE(decode_result(encode(MeetingResult())));
  const MeetingResult decoded = decode_result(encode(MeetingResult(kKilled)));
  ASSERT_TRUE(decoded);
  EXPECT_STREQ(decoded->what(), kKilled.what());
  EXPECT_EQ(error_of([] { decode_result(""); }).kind(), ErrorKind::kMismatch);
  EXPECT_EQ(error_of([] { decode_result("\1\2"); }).kind(), ErrorKind::kMismatch);
}

TEST(MeetingResultTest, TheFirstResultCountsForAllRanks) {
  const auto store = store::make_memory_store();
  EXPECT_STREQ(propose_result(*store, kKilled)->what(), kKilled.what());
  EXPECT_STREQ(propose_result(*store, kLeft)->what(), kKilled.what());
  EXPECT_STREQ(propose_result(*store, std::nullopt)->what(), kKilled.what());
}

TEST(MeetingResultTest, ARankThatOnlySeesAnotherLeaveGetsTheReasonOfThatRank) {
  const auto store = store::make_memory_store();
  auto first =
      std::async(std::launch::async, [&] { return agree_on_failure(*store, kKilled, 0, 3); });
  store->get("result", Deadline::after(seconds(30)));
  EXPECT_THAT(error_of([&] { check_for_failure(*store); }).what(),
              HasSubstr("rank 0 could not join the group: rank 2 ended"));
  const MeetingResult second = agree_on_failure(*store, kLeft, 1, 3);
  EXPECT_STREQ(second.value().what(), "peer_lost: rank 0 could not join the group: rank 2 ended");
  EXPECT_STREQ(first.get().value().what(), kKilled.what());
}

TEST(MeetingResultTest, ARankWithASpecificErrorKeepsThatError) {
  const auto store = store::make_memory_store();
  propose_result(*store, kKilled);
  const Error own(ErrorKind::kMismatch, "rank 1 has another stage");
  EXPECT_STREQ(agree_on_failure(*store, own, 0, 3).value().what(), own.what());
}

TEST(MeetingResultTest, CheckForFailureDoesNotThrowIfNoRankHasFailed) {
  const auto store = store::make_memory_store();
  check_for_failure(*store);
  propose_result(*store, std::nullopt);
  check_for_failure(*store);
}

TEST(MeetingResultTest, WithoutTheStoreARankKeepsItsOwnError) {
  std::vector<Fd> listeners;
  listeners.push_back(net::listen_on(net::Address::parse("127.0.0.1:0")));
  const net::Address address = net::local_address(listeners.front().get());
  const net::ProofContext context{Secret("hush"), "job", "store"};
  auto server = std::make_unique<store::TcpStoreServer>(std::move(listeners), context);
  const auto store =
      store::connect_tcp_store({address}, context, seconds(30), Deadline::after(seconds(30)));
  server.reset();
  const TimePoint start = Clock::now();
  EXPECT_STREQ(agree_on_failure(*store, kLeft, 1, 3).value().what(), kLeft.what());
  EXPECT_GE(Clock::now() - start, kStayAfterLoss)
      << "the rank must stay while the others detect the loss themselves";
}

/// Joins as `rank` of three on another thread. Returns the error's text, or "" on success.
std::future<std::string> join(store::Store& store, Rank rank, Deadline deadline) {
  return std::async(std::launch::async, [&store, rank, deadline]() -> std::string {
    try {
      agree_on_success(store, rank, 3, deadline, [](std::span<const Rank>) {});
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  });
}

TEST(MeetingResultTest, AGroupIsMadeWhenAllRanksHaveJoined) {
  const auto store = store::make_memory_store();
  const Deadline deadline = Deadline::after(seconds(30));
  auto first = join(*store, 0, deadline);
  auto second = join(*store, 1, deadline);
  store->get("joined/0", deadline);
  store->get("joined/1", deadline);
  EXPECT_EQ(first.wait_for(seconds(0)), std::future_status::timeout);
  EXPECT_EQ(join(*store, 2, deadline).get(), "");
  EXPECT_EQ(first.get(), "");
  EXPECT_EQ(second.get(), "");
  EXPECT_FALSE(agree_on_failure(*store, kLeft, 0, 3))
      << "a failure after the group is made is too late";
}

TEST(MeetingResultTest, AGroupThatOneRankCannotJoinIsMadeOnNoRank) {
  const auto store = store::make_memory_store();
  const Deadline deadline = Deadline::after(seconds(30));
  auto first = join(*store, 0, deadline);
  auto second = join(*store, 1, deadline);
  const Error own(ErrorKind::kResource, "too many open files");
  EXPECT_STREQ(agree_on_failure(*store, own, 2, 3).value().what(), own.what());
  for (auto* const other : {&first, &second}) {
    EXPECT_EQ(other->get(), "resource: rank 2 could not join the group: too many open files");
  }
}

/// A rank of a program that only meets and ends may have ended by the time another rank looks for
/// the missing ranks.
TEST(MeetingResultTest, ARankThatEndsAfterAllHaveJoinedIsNotMissing) {
  const auto store = store::make_memory_store();
  const Deadline deadline = Deadline::after(seconds(30));
  const auto looks = [&](auto) {
    propose_result(*store, std::nullopt);  // the last rank joins now, and ends
    throw kLeft;
  };
  EXPECT_NO_THROW(agree_on_success(*store, 0, 3, deadline, looks));
}

TEST(MeetingResultTest, ARankThatEndsBeforeAllHaveJoinedIsAnError) {
  const auto store = store::make_memory_store();
  const Deadline deadline = Deadline::after(seconds(30));
  const Error error =
      error_of([&] { agree_on_success(*store, 0, 3, deadline, [](auto) { throw kLeft; }); });
  EXPECT_STREQ(error.what(), kLeft.what());
}

TEST(MeetingResultTest, TheRankWithTheStoreStaysUntilAllKnow) {
  const auto store = store::make_memory_store();
  const Deadline deadline = Deadline::after(seconds(30));
  const auto stay = [&](Stays stays) {
    stay_until_all_know(*store, stays, 3, deadline, [](auto) {});
  };
  auto server = std::async(std::launch::async, [&] { stay(Stays::kYes); });
  stay(Stays::kNo);
  EXPECT_EQ(server.wait_for(milliseconds(50)), std::future_status::timeout);
  stay(Stays::kNo);
  server.get();
}

TEST(MeetingResultTest, ARankThatStaysCanBeInterrupted) {
  const auto store = store::make_memory_store();
  const Error error = error_of([&] {
    stay_until_all_know(
        *store, Stays::kYes, 2, Deadline::after(seconds(30)), [](auto) { throw kLeft; });
  });
  EXPECT_STREQ(error.what(), kLeft.what());
}

TEST(MeetingResultTest, TheTimeoutNamesARankThatDoesNotJoin) {
  const auto store = store::make_memory_store();
  const Deadline deadline = Deadline::after(std::chrono::milliseconds(50));
  auto first = join(*store, 0, deadline);
  store->get("joined/0", Deadline::after(seconds(30)));
  EXPECT_THAT(join(*store, 2, deadline).get(),
              HasSubstr("1 of 3 ranks did not join the group in time: rank 1"));
  EXPECT_THAT(first.get(), HasSubstr("did not join the group in time"));
}

/// The store of a group, whose server is stopped after `answers` answers.
class StoppingStore final : public store::testing::ForwardingStore {
 public:
  explicit StoppingStore(int answers) : answers_(answers) {}

  std::string get(std::string_view key, Deadline) override {
    return ForwardingStore::get(key, Deadline::after(Timeout(0)));
  }
  std::optional<std::string> try_get(std::string_view key) override {
    EXPECT_LE(asked_, answers_) << "this call would wait";
    return ForwardingStore::try_get(key);
  }
  std::vector<std::optional<std::string>> try_get_all(
      const std::vector<std::string>& keys) override {
    EXPECT_LE(asked_, answers_) << "this call would wait";
    return ForwardingStore::try_get_all(keys);
  }
  bool answers(Deadline) override { return ++asked_ <= answers_; }

  bool is_stopped() const { return asked_ > answers_; }

 private:
  int answers_;
  int asked_ = 0;
};

TEST(MeetingResultTest, AStoreThatDoesNotAnswerIsNotTakenForRanksThatDoNotJoin) {
  const auto outcome = [](StoppingStore& store) {
    const Deadline deadline = Deadline::after(milliseconds(20));
    return error_of([&] { agree_on_success(store, 0, 3, deadline, [](auto) {}); });
  };
  StoppingStore silent(0);
  EXPECT_THAT(outcome(silent).what(),
              AllOf(HasSubstr("does not answer"), Not(HasSubstr("of 3 ranks"))));
  StoppingStore stops(1);
  const Error error = outcome(stops);
  // On a slow machine the deadline passes before the second question.
  const std::string missing = stops.is_stopped() ? "had not joined the group when the store last "
                                                   "answered: rank 1, 2"
                                                 : "did not join the group in time: rank 1, 2";
  EXPECT_THAT(error.what(), HasSubstr("2 of 3 ranks " + missing));
  if (stops.is_stopped()) {
    EXPECT_THAT(error.what(), HasSubstr("does not answer"));
  }
}

}  // namespace
}  // namespace peal::rendezvous
