// Tests processes that come again to a place where they have met before.
#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/rendezvous/ended_ranks.h"
#include "peal/rendezvous/testing/child.h"
#include "peal/rendezvous/testing/meetings.h"

namespace peal::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::attend;
using testing::Child;
using testing::expect_all;
using testing::expect_met;
using ::testing::HasSubstr;
using testing::meet_all;
using testing::MeetTest;
using testing::Outcome;
using testing::Participant;
using testing::ranks_of;

class MeetAgainTest : public MeetTest {
 protected:
  std::vector<std::string> urls() { return {free_url(), "file://" + path_}; }
};

void expect_refused_at_once(const std::vector<Participant>& attendants) {
  const TimePoint begin = Clock::now();
  expect_all(meet_all(attendants), ErrorKind::kUsage, HasSubstr("has met here already"));
  EXPECT_LT(Clock::now() - begin, seconds(30));  // the deadline is later
}

TEST_F(MeetAgainTest, AProcessThatHoldsTheFirstMeetingIsRejectedAtOnceAndDoesNotDisturbIt) {
  for (const std::string& url : urls()) {
    const std::vector<Participant> attendants = ranks_of(url, 2);
    std::vector<Outcome> first = meet_all(attendants);
    expect_refused_at_once({attendants[1]});
    expect_refused_at_once({attendants[0]});
    expect_refused_at_once(attendants);
    EXPECT_NO_THROW(check_ends(*first[0].meeting->store, std::vector<Rank>{0, 1}, "was asked"));
    expect_met(std::move(first));
  }
}

TEST_F(MeetAgainTest, AnotherSpellingOfThePlaceIsRejectedToo) {
  const std::string port = free_port();
  std::vector<Outcome> at_port = meet_all(ranks_of("tcp://127.0.0.1:" + port, 2));
  expect_refused_at_once(ranks_of("tcp://localhost:" + port, 2));
  expect_met(std::move(at_port));

  const std::filesystem::path path = path_;
  std::vector<Outcome> in_file = meet_all(ranks_of("file://" + path.string(), 2));
  expect_refused_at_once(
      ranks_of("file://" + (path.parent_path() / "." / path.filename()).string(), 2));
  expect_met(std::move(in_file));
}

TEST_F(MeetAgainTest, AProcessThatComesAsAnotherRankIsRejectedToo) {
  const std::string url = free_url();
  std::vector<Outcome> first = meet_all(ranks_of(url, 2));
  expect_refused_at_once({ranks_of(url, 3)[2]});
  expect_met(std::move(first));
}

TEST_F(MeetAgainTest, AProcessMeetsAgainWhileAnotherOfItsThreadsLeaves) {
  for (const std::string& url : urls()) {
    const std::vector<Participant> attendants = ranks_of(url, 2);
    std::vector<Outcome> first = meet_all(attendants);
    auto second = std::async(std::launch::async, [&] { return meet_all(attendants); });
    EXPECT_EQ(second.wait_for(milliseconds(20)), std::future_status::timeout);
    testing::leave_all(std::move(first));
    expect_met(second.get());
  }
}

TEST_F(MeetAgainTest, ARankThatHasLeftWaitsUntilTheOthersHaveLeft) {
  for (const std::string& url : urls()) {
    std::vector<Participant> attendants = ranks_of(url, 2);
    std::vector<Outcome> first = meet_all(attendants);
    first[1].meeting.reset();
    auto back = std::async(std::launch::async, [&] { return attend(attendants[1], soon()); });
    EXPECT_EQ(back.wait_for(milliseconds(200)), std::future_status::timeout);
    first[0].meeting.reset();
    std::vector<Outcome> second;
    second.push_back(attend(attendants[0], soon()));
    second.push_back(back.get());
    expect_met(std::move(second));
  }
}

TEST_F(MeetAgainTest, ARankThatHasLeftTimesOutIfOthersDoNotLeave) {
  const std::vector<Participant> attendants = ranks_of(free_url(), 2);
  std::vector<Outcome> first = meet_all(attendants);
  first[1].meeting.reset();
  expect_all({attend(attendants[1], Deadline::after(seconds(2)))},
             ErrorKind::kTimeout,
             HasSubstr("has left an earlier meeting here, but other ranks have not"));
}

TEST_F(MeetAgainTest, RankZeroWaitsUntilItsEarlierStoreIsGone) {
  const std::vector<Participant> attendants = ranks_of(free_url(), 2);
  std::vector<Outcome> first = meet_all(attendants);
  auto leaving = std::async(std::launch::async, [&] { first[0].meeting.reset(); });
  std::vector<Outcome> second(2);
  auto back = std::async(std::launch::async, [&] { return attend(attendants[0], soon()); });
  leaving.get();  // returns after rank 0 has waited for rank 1
  first[1].meeting.reset();
  second[1] = attend(attendants[1], soon());
  second[0] = back.get();
  expect_met(std::move(second));
}

TEST_F(MeetAgainTest, AMeetingThatEndedWithRankZeroDoesNotBlockTheNext) {
  for (const std::string& url : urls()) {
    const std::vector<Participant> attendants = ranks_of(url, 2);
    std::vector<Outcome> first = meet_all(attendants);
    first[0].meeting.reset();
    std::filesystem::remove(path_);
    const auto early = Deadline::after(milliseconds(100));
    expect_all({attend(attendants[1], early)}, ErrorKind::kTimeout, HasSubstr("rank 0"));
    expect_met(meet_all(attendants));
  }
}

TEST_F(MeetAgainTest, ADuplicateRankInAnotherProcessDoesNotEndTheMeeting) {
  for (const Rank rank : {0, 1}) {
    const std::vector<Participant> attendants = ranks_of(free_url(), 2);
    std::vector<Outcome> first = meet_all(attendants);
    const TimePoint begin = Clock::now();
    Child intruder([&] {
      const Outcome outcome = attend(attendants[static_cast<std::size_t>(rank)], soon());
      return outcome.error && outcome.error->kind() == ErrorKind::kUsage ? 0 : 1;
    });
    EXPECT_EQ(intruder.exit_code(), 0);
    EXPECT_LT(Clock::now() - begin, seconds(30));
    EXPECT_NO_THROW(check_ends(*first[1].meeting->store, std::vector<Rank>{0, 1}, "was asked"));
    expect_met(std::move(first));
  }
}

}  // namespace
}  // namespace peal::rendezvous
