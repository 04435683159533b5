// Meetings in a store that the ranks share already.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/rendezvous/testing/meetings.h"
#include "peal/store/memory_store.h"
#include "peal/store/prefix_store.h"

namespace peal::rendezvous {
namespace {

using testing::Attendant;
using testing::expect_all;
using testing::expect_met;
using ::testing::HasSubstr;
using testing::meet_all;
using testing::MeetTest;
using testing::Outcome;
using testing::ranks_of;
using ::testing::SizeIs;

using StorePtr = std::shared_ptr<store::Store>;

class MeetInStoreTest : public MeetTest {
 protected:
  StorePtr part(const std::string& name) const { return store::make_prefix_store(store_, name); }

  static std::vector<Attendant> ranks_in(const StorePtr& store, int world_size) {
    std::vector<Attendant> attendants = ranks_of("env://", world_size);
    for (Attendant& attendant : attendants) attendant.wish.store = store;
    return attendants;
  }

  StorePtr store_ = store::make_memory_store();
};

TEST_F(MeetInStoreTest, RanksMeetInAStoreThatIsGiven) {
  for (const int size : {1, 2, 3, 8}) {
    expect_met(meet_all(ranks_in(store::make_memory_store(), size)));
  }
}

TEST_F(MeetInStoreTest, TheyMeetAgainWhereTheyMetBeforeUnderAnotherPrefix) {
  const std::vector<Outcome> first = meet_all(ranks_in(part("a"), 3));
  expect_met(meet_all(ranks_in(part("b"), 3)));  // while the first are still together
  expect_met(first);
}

TEST_F(MeetInStoreTest, UnderTheSamePrefixTheyAreToldWhatIsWrong) {
  const std::vector<Outcome> first = meet_all(ranks_in(part("a"), 2));
  expect_all(meet_all(ranks_in(part("a"), 2)), ErrorKind::kUsage, HasSubstr("is given twice"));
}

TEST_F(MeetInStoreTest, TwoMeetingsAtOnceUnderTwoPrefixesDoNotMix) {
  std::vector<Attendant> all = ranks_in(part("a"), 3);
  for (const Attendant& attendant : ranks_in(part("b"), 3)) all.push_back(attendant);
  std::vector<Outcome> outcomes = meet_all(all);
  for (const Outcome& outcome : outcomes) ASSERT_TRUE(outcome.meeting);
  EXPECT_NE(outcomes[0].meeting->job, outcomes[3].meeting->job);
  expect_met({outcomes.begin(), outcomes.begin() + 3});
  expect_met({outcomes.begin() + 3, outcomes.end()});
}

TEST_F(MeetInStoreTest, TheSecretIsTheirOwnWhereTheyHaveOne) {
  std::vector<Attendant> attendants = ranks_in(store_, 3);
  Guarded<std::vector<std::string>> said;
  for (Attendant& attendant : attendants) {
    attendant.config.secret = "one";
    attendant.report = [&](Severity, std::string_view message) {
      said.with([&](auto& all) { all.emplace_back(message); });
    };
  }
  for (const Outcome& outcome : meet_all(attendants)) {
    ASSERT_TRUE(outcome.meeting);
    EXPECT_EQ(outcome.meeting->secret, "one");
  }
  EXPECT_THAT(said.with([](auto& all) { return all; }), SizeIs(0));
}

TEST_F(MeetInStoreTest, ElseRankZeroMakesOneForAllAndSaysSoOnce) {
  std::vector<Attendant> attendants = ranks_in(store_, 3);
  Guarded<std::vector<std::string>> said;
  for (Attendant& attendant : attendants) {
    attendant.report = [&](Severity severity, std::string_view message) {
      if (severity == Severity::kWarning) {
        said.with([&](auto& all) { all.emplace_back(message); });
      }
    };
  }
  const std::vector<Outcome> outcomes = meet_all(attendants);
  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.meeting);
    EXPECT_FALSE(outcome.meeting->secret.empty());
    EXPECT_EQ(outcome.meeting->secret, outcomes[0].meeting->secret);
  }
  const auto warnings = said.with([](auto& all) { return all; });
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr("no secret was given (PEAL_SECRET)"));
}

TEST_F(MeetInStoreTest, ARankAloneHasNobodyToKeepASecretFrom) {
  std::vector<Attendant> attendants = ranks_in(store_, 1);
  attendants[0].report = [](Severity, std::string_view message) { ADD_FAILURE() << message; };
  EXPECT_TRUE(meet_all(attendants)[0].meeting);
}

TEST_F(MeetInStoreTest, WhoDoesNotComeIsNamed) {
  std::vector<Attendant> attendants = ranks_in(store_, 3);
  attendants.pop_back();
  expect_all(meet_all(attendants, Deadline::after(Timeout(300))),
             ErrorKind::kTimeout,
             HasSubstr("1 of 3 ranks did not come to the meeting in time: rank 2"));
}

TEST_F(MeetInStoreTest, WhatTheStoreThrowsIsNotTakenForTheLossOfRankZero) {
  class Broken final : public store::Store {
   public:
    void set(std::string_view, std::string_view) override { fail(); }
    std::string get(std::string_view, Deadline) override { fail(); }
    std::optional<std::string> try_get(std::string_view) override { fail(); }
    std::int64_t add(std::string_view, std::int64_t) override { fail(); }
    std::string compare_set(std::string_view, std::string_view, std::string_view) override {
      fail();
    }
    void wait(const std::vector<std::string>&, Deadline) override { fail(); }
    bool erase(std::string_view) override { fail(); }
    void set_will(std::string_view, std::string_view) override {}
    bool answers(Deadline) override { return false; }

   private:
    [[noreturn]] static void fail() { throw Error(ErrorKind::kPeerLost, "the store is gone"); }
  };
  expect_all(meet_all(ranks_in(std::make_shared<Broken>(), 2)),
             ErrorKind::kPeerLost,
             ::testing::StrEq("peer_lost: the store is gone"));
}

}  // namespace
}  // namespace peal::rendezvous
