// Tests meetings in a store that the ranks share already.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/rendezvous/meeting_result.h"
#include "peal/rendezvous/session.h"
#include "peal/rendezvous/testing/meetings.h"
#include "peal/store/memory_store.h"
#include "peal/store/prefix_store.h"
#include "peal/store/sealed_store.h"

namespace peal::rendezvous {
namespace {

using ::testing::AnyOf;
using testing::expect_all;
using testing::expect_met;
using ::testing::HasSubstr;
using testing::meet_all;
using testing::MeetTest;
using testing::Outcome;
using testing::Participant;
using testing::ranks_of;
using ::testing::SizeIs;

using StorePtr = std::shared_ptr<store::Store>;

class MeetInStoreTest : public MeetTest {
 protected:
  StorePtr part(const std::string& name) const { return store::make_prefix_store(store_, name); }

  static std::vector<Participant> ranks_in(const StorePtr& store, int world_size) {
    std::vector<Participant> attendants = ranks_of("env://", world_size);
    for (Participant& participant : attendants) participant.request.store = store;
    return attendants;
  }

  static std::vector<Participant> secretly(std::vector<Participant> attendants) {
    for (Participant& participant : attendants) participant.config.secret = Secret("one");
    return attendants;
  }

  static constexpr Timeout kShort{2000};

  StorePtr store_ = store::make_memory_store();
};

TEST_F(MeetInStoreTest, RanksMeetInAGivenStore) {
  for (const int size : {1, 2, 3, 8}) {
    expect_met(meet_all(ranks_in(store::make_memory_store(), size)));
  }
}

TEST_F(MeetInStoreTest, RanksMeetAgainInTheSameStoreUnderAnotherPrefix) {
  const std::vector<Outcome> first = meet_all(ranks_in(part("a"), 3));
  expect_met(meet_all(ranks_in(part("b"), 3)));  // while the first are still together
  expect_met(first);
}

TEST_F(MeetInStoreTest, ASecondMeetingUnderTheSamePrefixIsAUsageError) {
  const std::vector<Outcome> first = meet_all(ranks_in(part("a"), 2));
  expect_all(meet_all(ranks_in(part("a"), 2)), ErrorKind::kUsage, HasSubstr("is given twice"));
}

TEST_F(MeetInStoreTest, TwoMeetingsAtOnceUnderTwoPrefixesDoNotMix) {
  std::vector<Participant> all = ranks_in(part("a"), 3);
  for (const Participant& participant : ranks_in(part("b"), 3)) all.push_back(participant);
  std::vector<Outcome> outcomes = meet_all(all);
  for (const Outcome& outcome : outcomes) ASSERT_TRUE(outcome.meeting);
  EXPECT_NE(outcomes[0].meeting->job, outcomes[3].meeting->job);
  expect_met({outcomes.begin(), outcomes.begin() + 3});
  expect_met({outcomes.begin() + 3, outcomes.end()});
}

TEST_F(MeetInStoreTest, TheRanksUseTheSecretThatTheyHave) {
  std::vector<Participant> attendants = ranks_in(store_, 3);
  Guarded<std::vector<std::string>> said;
  for (Participant& participant : attendants) {
    participant.config.secret = Secret("one");
    participant.report = [&](std::string_view message) {
      said.with([&](auto& all) { all.emplace_back(message); });
    };
  }
  for (const Outcome& outcome : meet_all(attendants)) {
    ASSERT_TRUE(outcome.meeting);
    EXPECT_EQ(outcome.meeting->secret, Secret("one"));
  }
  EXPECT_THAT(said.with([](auto& all) { return all; }), SizeIs(0));
}

TEST_F(MeetInStoreTest, WithoutASecretRankZeroMakesOneAndReportsThatOnce) {
  std::vector<Participant> attendants = ranks_in(store_, 3);
  Guarded<std::vector<std::string>> said;
  for (Participant& participant : attendants) {
    participant.report = [&](std::string_view message) {
      said.with([&](auto& all) { all.emplace_back(message); });
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
  EXPECT_EQ(store_->try_get("meeting/secret"), std::nullopt) << "deleted when all have read it";
}

TEST_F(MeetInStoreTest, TlsWithoutASecretIsAUsageErrorOnEachRank) {
  std::vector<Participant> attendants = ranks_in(store_, 2);
  for (Participant& participant : attendants) participant.config.tls = Tls::kOn;
  expect_all(meet_all(attendants), ErrorKind::kUsage, HasSubstr("PEAL_TLS=on needs a secret"));
  EXPECT_EQ(store_->try_get("meeting/secret"), std::nullopt);
}

TEST_F(MeetInStoreTest, ASecretOnOneRankOnlyIsAnErrorOnBothRanks) {
  for (const std::size_t owner : {std::size_t{0}, std::size_t{1}}) {
    std::vector<Participant> attendants = ranks_in(part(owner == 0 ? "a" : "b"), 2);
    attendants[owner].config.secret = Secret("one");
    for (const Outcome& outcome : meet_all(attendants, Deadline::after(kShort))) {
      ASSERT_TRUE(outcome.error);
      EXPECT_THAT(outcome.error->what(), AnyOf(HasSubstr("seal"), HasSubstr("did not come")));
    }
  }
}

TEST_F(MeetInStoreTest, AValueWithoutTheSealEndsTheMeetingOnAllRanks) {
  // Ranks 0 and 2 read the claim of rank 1 only after all ranks have come.
  store_->set("meeting/rank/1", "forged");
  expect_all(meet_all(secretly(ranks_in(store_, 3))),
             ErrorKind::kUsage,
             HasSubstr("\"meeting/rank/1\" in the store where the ranks meet does not bear"));
}

TEST_F(MeetInStoreTest, AForgedMeetingResultIsAnErrorThatNamesIt) {
  store_->set("meeting/result", encode(MeetingResult()));
  expect_all(meet_all(secretly(ranks_in(store_, 2))), ErrorKind::kUsage, HasSubstr("result"));
}

TEST_F(MeetInStoreTest, ALaterMeetingRejectsTheSessionOfAnEarlierOne) {
  expect_met(meet_all(secretly(ranks_in(part("a"), 2))));
  // Another program stores the old session where the next meeting looks for its session.
  store_->set("b/meeting/session", *store_->try_get("a/meeting/session"));
  expect_all(meet_all(secretly(ranks_in(part("b"), 2))),
             ErrorKind::kUsage,
             HasSubstr("the session in the store where the ranks meet was made without rank"));
}

TEST_F(MeetInStoreTest, GroupsOfTwoMeetingsUseDifferentKeys) {
  std::vector<std::string> parts;
  for (const char* name : {"a", "b"}) {
    const std::vector<Outcome> outcomes = meet_all(secretly(ranks_in(part(name), 2)));
    ASSERT_TRUE(outcomes[0].meeting && outcomes[1].meeting);
    outcomes[0].meeting->store->set("contact", "here");
    EXPECT_EQ(outcomes[1].meeting->store->get("contact", soon()), "here");
    const auto session = Session::decode(
        *store::make_sealed_store(part(name), Secret("one"), kShort)->try_get("meeting/session"));
    EXPECT_TRUE(store_->try_get(std::string(name) + "/session/" + session.name + "/contact"));
    parts.push_back(session.name);
  }
  EXPECT_NE(parts[0], parts[1]);
}

/// Sets the variables of a launcher that has put all ranks on this machine.
std::vector<Participant> launched_here(std::vector<Participant> attendants) {
  const std::string size = std::to_string(attendants.size());
  for (std::size_t rank = 0; rank < attendants.size(); ++rank) {
    const std::string self = std::to_string(rank);
    attendants[rank].variables = {{"RANK", self},
                                  {"WORLD_SIZE", size},
                                  {"LOCAL_RANK", self},
                                  {"LOCAL_WORLD_SIZE", size},
                                  {"PEAL_JOB", "a job"}};
    attendants[rank].report = [](std::string_view message) { ADD_FAILURE() << message; };
  }
  return attendants;
}

TEST_F(MeetInStoreTest, RanksThatALauncherPutHereReadOnlyASocketNameFromTheStore) {
  // Other values in the store must not be read.
  for (const char* key : {"meeting/rank/0", "meeting/result", "meeting/several_hosts"}) {
    store_->set(key, "forged");
  }
  expect_met(meet_all(launched_here(ranks_in(store_, 3))));
  EXPECT_TRUE(store_->try_get("place"));
  EXPECT_EQ(store_->try_get("meeting/arrived"), std::nullopt);
}

TEST_F(MeetInStoreTest, APartOfThoseRanksReadsOnlyASocketNameToo) {
  std::vector<Participant> some = launched_here(ranks_in(store_, 3));
  some.pop_back();
  for (Participant& participant : some) {
    participant.request.world_size = 2;
    participant.request.ranks = RanksOf::kPartOfJob;
  }
  expect_met(meet_all(some));
  EXPECT_TRUE(store_->try_get("place"));
}

TEST_F(MeetInStoreTest, RanksThatMayBeElsewhereMeetInTheStore) {
  std::vector<Participant> merged = launched_here(ranks_in(part("merged"), 2));
  for (Participant& participant : merged) participant.request.ranks = RanksOf::kOthers;
  std::vector<Participant> by_hand = launched_here(ranks_in(part("hand"), 2));
  for (Participant& participant : by_hand) participant.variables.erase("PEAL_JOB");
  for (std::vector<Participant> attendants : {merged, by_hand}) {
    for (Participant& participant : attendants) participant.report = silent_report();
    expect_met(meet_all(attendants));
  }
  EXPECT_EQ(store_->try_get("merged/place"), std::nullopt);
  EXPECT_EQ(store_->try_get("hand/place"), std::nullopt);
}

TEST_F(MeetInStoreTest, RanksOfALauncherNameRankZeroIfItDoesNotCome) {
  std::vector<Participant> attendants = launched_here(ranks_in(store_, 3));
  attendants.erase(attendants.begin());
  expect_all(meet_all(attendants, Deadline::after(Timeout(300))),
             ErrorKind::kTimeout,
             HasSubstr("1 of 3 ranks did not join the group in time: rank 0"));
}

TEST_F(MeetInStoreTest, RankZeroWarnsOnceIfRanksOnSeveralMachinesUseNoTls) {
  for (const Tls tls : {Tls::kOff, Tls::kOn}) {
    const StorePtr own = part(tls == Tls::kOn ? "tls" : "plain");
    // A rank on another machine sets this.
    store::make_sealed_store(own, Secret("one"), kShort)->set("meeting/several_hosts", "");
    std::vector<Participant> attendants = secretly(ranks_in(own, 3));
    Guarded<std::vector<std::string>> said;
    for (Participant& participant : attendants) {
      participant.config.tls = tls;
      participant.report = [&](std::string_view message) {
        said.with([&](auto& all) { all.emplace_back(message); });
      };
    }
    for (const Outcome& outcome : meet_all(attendants)) ASSERT_TRUE(outcome.meeting);
    const auto warnings = said.with([](auto& all) { return all; });
    ASSERT_THAT(warnings, SizeIs(tls == Tls::kOn ? 0 : 1));
    for (const std::string& warning : warnings) EXPECT_THAT(warning, HasSubstr("PEAL_TLS=on"));
  }
}

TEST_F(MeetInStoreTest, AGroupOfOneDoesNotWarnAboutAMissingSecret) {
  std::vector<Participant> attendants = ranks_in(store_, 1);
  attendants[0].report = [](std::string_view message) { ADD_FAILURE() << message; };
  EXPECT_TRUE(meet_all(attendants)[0].meeting);
}

TEST_F(MeetInStoreTest, TheTimeoutNamesAMissingRank) {
  std::vector<Participant> attendants = ranks_in(store_, 3);
  attendants.pop_back();
  expect_all(meet_all(attendants, Deadline::after(Timeout(300))),
             ErrorKind::kTimeout,
             HasSubstr("1 of 3 ranks did not join the group in time: rank 2"));
}

TEST_F(MeetInStoreTest, AnErrorOfTheGivenStoreIsNotReportedAsTheLossOfRankZero) {
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
