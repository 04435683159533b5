#include "peal/rendezvous/fail_meeting.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/rendezvous/contact.h"
#include "peal/rendezvous/meeting_result.h"
#include "peal/rendezvous/testing/meetings.h"
#include "peal/store/memory_store.h"

namespace peal::rendezvous {
namespace {

using testing::expect_all;
using testing::expect_met;
using ::testing::HasSubstr;
using testing::meet_all;
using testing::MeetTest;
using testing::Outcome;
using testing::Participant;
using testing::ranks_of;

class FailMeetingTest : public MeetTest {
 protected:
  std::vector<Participant> ranks(int size) const {
    std::vector<Participant> attendants = ranks_of("env://", size);
    for (Participant& participant : attendants) {
      participant.request.store = store_;
      participant.request.ranks = RanksOf::kOthers;
      participant.config.secret = Secret("one");
    }
    return attendants;
  }

  void fail() {
    fail_meeting(store_,
                 Secret("one"),
                 std::chrono::seconds(10),
                 Error(ErrorKind::kPeerLost, "rank 2 was killed", {.rank = 2}));
  }

  std::shared_ptr<store::Store> store_ = store::make_memory_store();
};

TEST_F(FailMeetingTest, RanksThatWaitForAMissingRankGetTheErrorAtOnce) {
  std::vector<Participant> attendants = ranks(3);
  attendants.pop_back();
  std::thread driver([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    fail();
  });
  const TimePoint begin = Clock::now();
  const std::vector<Outcome> outcomes = meet_all(attendants);
  driver.join();
  expect_all(outcomes, ErrorKind::kPeerLost, HasSubstr("rank 2 was killed"));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(3));
}

TEST_F(FailMeetingTest, RanksThatHaveMetReadTheErrorWhenTheyMakeTheirGroup) {
  std::vector<Outcome> outcomes = meet_all(ranks(3));
  for (const Outcome& outcome : outcomes) ASSERT_TRUE(outcome.meeting) << outcome.error->what();
  fail();
  for (const Outcome& outcome : outcomes) {
    const auto group = group_store(outcome.meeting->store, kWorld);
    EXPECT_THROW(check_for_failure(*group), Error);
  }
}

TEST_F(FailMeetingTest, AGroupThatIsMadeIsNotAffected) {
  std::vector<Outcome> outcomes = meet_all(ranks(2));
  for (const Outcome& outcome : outcomes) ASSERT_TRUE(outcome.meeting) << outcome.error->what();
  propose_result(*group_store(outcomes[0].meeting->store, kWorld), std::nullopt);
  fail();
  for (const Outcome& outcome : outcomes) {
    EXPECT_NO_THROW(check_for_failure(*group_store(outcome.meeting->store, kWorld)));
  }
}

}  // namespace
}  // namespace peal::rendezvous
