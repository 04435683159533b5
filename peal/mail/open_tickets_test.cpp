#include "peal/mail/open_tickets.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::mail {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OpenTicketsTest : public ::testing::Test {
 protected:
  TicketPtr add(seconds timeout) {
    auto ticket = std::make_shared<Ticket>("a message", Timeout(timeout));
    open_.add(ticket);
    return ticket;
  }
  std::vector<TicketPtr> late_in(seconds time) { return open_.late(now_ + time); }

  const TimePoint now_ = Clock::now();
  OpenTickets open_;
};

TEST_F(OpenTicketsTest, TicketsPastTheirDeadlineAreLateUntilTheyEnd) {
  const TicketPtr second = add(seconds(200));
  const TicketPtr first = add(seconds(100));
  const TicketPtr third = add(seconds(100));
  third->succeed(0);
  EXPECT_THAT(late_in(seconds(50)), IsEmpty());
  EXPECT_THAT(late_in(seconds(150)), ElementsAre(first));
  EXPECT_EQ(open_.soonest(), first->deadline().at());
  EXPECT_THAT(late_in(seconds(250)), ElementsAre(second, first));
  first->succeed(0);
  EXPECT_THAT(late_in(seconds(250)), ElementsAre(second));
}

TEST_F(OpenTicketsTest, ADeadlineSetLaterCounts) {
  Ticket ticket([] { return std::string("a message"); }, Timeout(seconds(100)));
  const TicketPtr borrowed(TicketPtr(), &ticket);
  open_.add(borrowed);
  EXPECT_THAT(late_in(seconds(1'000)), IsEmpty());
  EXPECT_EQ(open_.soonest(), TimePoint::max());
  ticket.start_timeout();
  open_.timeout_started(ticket);
  EXPECT_EQ(open_.soonest(), ticket.deadline().at());
  EXPECT_THAT(late_in(seconds(1'000)), ElementsAre(borrowed));
}

TEST_F(OpenTicketsTest, ADeadlineIsNotMissedAmongManyTickets) {
  constexpr int kMany = 10'000;
  for (int i = 0; i < kMany; ++i) add(seconds(1'000));
  const TicketPtr soon = add(seconds(100));
  for (int i = 0; i < kMany; ++i) add(seconds(1'000));
  for (int i = 0; i < 5; ++i) EXPECT_THAT(late_in(seconds(50)), IsEmpty());
  EXPECT_THAT(late_in(seconds(150)), ElementsAre(soon));
}

TEST_F(OpenTicketsTest, EndedTicketsAreReleasedSoon) {
  constexpr std::size_t kMany = 10'000;
  std::vector<std::weak_ptr<Ticket>> ended;
  for (std::size_t i = 0; i < kMany; ++i) {
    const TicketPtr ticket = add(seconds(100));
    ticket->succeed(0);
    ended.push_back(ticket);
  }
  const TicketPtr last = add(seconds(100));
  EXPECT_TRUE(open_.any());
  std::size_t looks = 0;
  for (; !ended.front().expired() && looks < kMany; ++looks) late_in(seconds(1));
  EXPECT_GT(looks, 50U);  // so that a look costs little
  EXPECT_LT(looks, 500U);
  for (const auto& ticket : ended) EXPECT_TRUE(ticket.expired());
  last->succeed(0);
  EXPECT_FALSE(open_.any());
}

TEST_F(OpenTicketsTest, AForgottenTicketDoesNotFail) {
  const TicketPtr first = add(seconds(100));
  const TicketPtr second = add(seconds(100));
  open_.forget(first);
  open_.fail(Error(ErrorKind::kTimeout, "a rank is late"));
  EXPECT_FALSE(first->ended());
  EXPECT_TRUE(second->exception());
  EXPECT_FALSE(open_.any());
}

}  // namespace
}  // namespace peal::mail
