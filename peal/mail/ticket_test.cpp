// Watchers of a ticket are called at its end. Other tests cover the rest of a ticket.
#include "peal/mail/ticket.h"

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::mail {
namespace {

TicketPtr some_ticket() {
  return std::make_shared<Ticket>("recv of 10 f32 from rank 1", std::chrono::minutes(5));
}

const Error kWhy(ErrorKind::kPeerLost, "rank 1 has ended");

TEST(TicketTest, AWatcherIsCalledOnceAtTheEnd) {
  for (const bool well : {true, false}) {
    const TicketPtr ticket = some_ticket();
    int calls = 0;
    ticket->when_ended([&] {
      ++calls;
      EXPECT_TRUE(ticket->ended());
      EXPECT_EQ(ticket->exception() == nullptr, well);
    });
    EXPECT_EQ(calls, 0);
    well ? ticket->succeed(1) : ticket->fail(kWhy);
    EXPECT_EQ(calls, 1);
    ticket->succeed(1);
    ticket->fail(kWhy);
    EXPECT_EQ(calls, 1);
  }
}

TEST(TicketTest, AllWatchersAreCalled) {
  const TicketPtr ticket = some_ticket();
  int calls = 0;
  for (int i = 0; i < 3; ++i) ticket->when_ended([&] { ++calls; });
  ticket->fail(kWhy);
  EXPECT_EQ(calls, 3);
}

TEST(TicketTest, AWatcherAddedAfterTheEndIsCalledAtOnce) {
  const TicketPtr ticket = some_ticket();
  ticket->succeed(1);
  std::optional<std::thread::id> where;
  ticket->when_ended([&] { where = std::this_thread::get_id(); });
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(TicketTest, AWatcherMayAddAnotherWatcher) {
  const TicketPtr ticket = some_ticket();
  int calls = 0;
  ticket->when_ended([&] { ticket->when_ended([&] { ++calls; }); });
  ticket->succeed(1);
  EXPECT_EQ(calls, 1);
}

TEST(TicketTest, AWatcherMayReleaseTheTicket) {
  TicketPtr ticket = some_ticket();
  const std::weak_ptr<Ticket> rest = ticket;
  ticket->when_ended([held = ticket]() mutable { held.reset(); });
  std::thread([ended = std::move(ticket)]() mutable { ended->succeed(1); }).join();
  EXPECT_TRUE(rest.expired());
}

TEST(TicketTest, WatchersMayBeCalledLater) {
  const TicketPtr ticket = some_ticket();
  int calls = 0;
  EXPECT_FALSE(ticket->is_watched());
  ticket->when_ended([&] { ++calls; });
  EXPECT_TRUE(ticket->is_watched());
  ticket->set_failure(kWhy);
  EXPECT_TRUE(ticket->ended());
  EXPECT_EQ(calls, 0);
  ticket->tell_watchers();
  EXPECT_EQ(calls, 1);
}

/// The end and the watchers come at the same time, from several threads each.
TEST(TicketTest, EveryWatcherIsCalledExactlyOnceInARaceWithTheEnd) {
  constexpr int kEach = 3;
  for (int round = 0; round < 500; ++round) {
    const TicketPtr ticket = some_ticket();
    std::atomic<int> ready = 0;
    std::atomic<int> calls = 0;
    std::vector<std::thread> threads;
    const auto at_once = [&](auto what) {
      threads.emplace_back([&, what] {
        for (++ready; ready < 2 + kEach;) std::this_thread::yield();
        what();
      });
    };
    at_once([&] { ticket->succeed(1); });
    at_once([&] { ticket->fail(kWhy); });
    for (int i = 0; i < kEach; ++i) {
      at_once([&] { ticket->when_ended([&] { ++calls; }); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(calls, kEach);
  }
}

}  // namespace
}  // namespace peal::mail
