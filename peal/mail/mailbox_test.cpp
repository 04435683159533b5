// The mailbox as a state machine, driven by hand over the memory transport.
#include "peal/mail/mailbox.h"

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "peal/mail/testing/mailboxes.h"
#include "peal/transport/pollable.h"

namespace peal::mail {
namespace {

using testing::MailboxTest;

TEST_F(MailboxTest, AMessageWaitsForItsReceive) {
  const std::vector<float> out = {1, 2, 3};
  std::vector<float> in(3);
  const TicketPtr sent = send(0, out);
  settle();
  EXPECT_TRUE(sent->ended());
  const TicketPtr received = receive(1, in, kAnySource);
  EXPECT_TRUE(received->ended());
  EXPECT_EQ(received->source(), 0);
  EXPECT_EQ(in, out);
}

/// On a ring that has room for only a part of the message.
TEST_F(MailboxTest, SendAtOnceBorrowsNoMemory) {
  for (const Bytes taken : {Bytes(1), Bytes(31), Bytes(33), Bytes(1'000)}) {
    connect({.most_per_call = taken});
    std::vector<float> out = {1, 2, 3};
    EXPECT_TRUE(send_at_once(0, out));
    out = {0, 0, 0};
    std::vector<float> in(3);
    const TicketPtr received = receive(1, in, 0);
    settle();
    EXPECT_TRUE(received->ended());
    EXPECT_EQ(in, (std::vector<float>{1, 2, 3})) << taken.value;
    EXPECT_FALSE(box(0).is_busy());
  }
}

TEST_F(MailboxTest, SendAtOnceDoesNotOvertakeWaitingMessages) {
  connect({.most_per_call = 20_B, .idle_calls = 3});
  const std::vector<float> first = {1, 2, 3};
  const std::vector<float> second = {4};
  EXPECT_TRUE(send_at_once(0, first));
  ASSERT_TRUE(box(0).is_busy());
  EXPECT_FALSE(send_at_once(0, second));
  settle();
  ASSERT_FALSE(box(0).is_busy());
  int refused = 0;
  while (!send_at_once(0, second) && refused < 10) ++refused;
  EXPECT_EQ(refused, 3);  // the idle calls
  std::vector<float> in(3);
  std::vector<float> then(1);
  receive(1, in, 0);
  receive(1, then, 0);
  settle();
  EXPECT_EQ(in, first);
  EXPECT_EQ(then, second);
}

TEST_F(MailboxTest, SendAtOnceLeavesErrorsToSend) {
  const std::vector<float> large(8'192);
  EXPECT_FALSE(send_at_once(0, large));
  box(1).send_leave(Departure::kNormal);
  settle();
  EXPECT_FALSE(send_at_once(0, {1}));
  box(0).fail(Error(ErrorKind::kTimeout, "it took too long"));
  EXPECT_FALSE(send_at_once(0, {1}));
}

TEST_F(MailboxTest, AReceiveCalledWhileItsMessageArrivesGetsTheWholeMessage) {
  connect({.most_per_call = 100_B, .idle_calls = 1});
  const std::vector<float> out = numbers(2'000);
  std::vector<float> in(2'000);
  send(0, out);
  box(0).advance();
  for (int i = 0; i < 10; ++i) box(1).advance();
  const TicketPtr received = receive(1, in, 0);
  EXPECT_FALSE(received->ended());
  settle();
  EXPECT_TRUE(received->ended());
  EXPECT_EQ(in, out);
}

TEST_F(MailboxTest, ALargeMessageStaysWithItsSenderUntilItsReceive) {
  const std::vector<float> out = numbers(500'000);
  std::vector<float> in(500'000);
  const TicketPtr sent = send(0, out);
  settle();
  EXPECT_FALSE(sent->ended());
  const TicketPtr received = receive(1, in, 0);
  settle();
  EXPECT_TRUE(sent->ended());
  EXPECT_TRUE(received->ended());
  EXPECT_EQ(in, out);
}

/// The caller's thread may read the accept and end its own operation. Then no event comes for the
/// rest of the message, and the sleeping thread must be woken.
TEST_F(MailboxTest, AnAcceptedMessageInFlightCountsAsWork) {
  const std::vector<float> out = numbers(80'000);
  std::vector<float> in(80'000);
  const TicketPtr sent = send(0, out);
  settle();
  receive(1, in, 0);
  box(1).advance();
  box(0).advance();
  EXPECT_FALSE(sent->ended());
  EXPECT_TRUE(box(0).has_work());
  EXPECT_TRUE(box(0).is_busy());
  settle();
  EXPECT_TRUE(sent->ended());
  EXPECT_FALSE(box(0).is_busy());
}

/// Whether the channel has an event for a driver that sleeps on the mailbox's interests.
bool has_event(transport::Transport& transport, const Mailbox& mailbox) {
  std::vector<transport::Interest> interests;
  mailbox.add_interests(interests);
  auto& channel = dynamic_cast<transport::PollableChannel&>(transport.mail());
  std::vector<pollfd> entries;
  const bool would_sleep = channel.prepare(interests, entries);
  channel.finish(entries);
  return !would_sleep;
}

/// Checks `has_work`: without an event, `advance` moves something if and only if the mailbox has
/// work.
TEST_F(MailboxTest, WithoutAnEventHasWorkIfAndOnlyIfAdvanceMoves) {
  constexpr std::array<std::size_t, 5> kCounts = {1, 4'096, 5'000, 80'000, 300'000};
  for (unsigned seed = 0; seed < 40; ++seed) {
    ends_.clear();
    // With a small bound, small messages are held back, and receivers give back credit.
    connect_plain(seed % 2 == 0 ? std::optional<Bytes>() : 40'000_B);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t bound) { return random() % bound; };
    std::list<std::vector<float>> memory;
    std::array<std::vector<std::size_t>, 2> unreceived;  // by sender
    for (int step = 0; step < 400; ++step) {
      const auto rank = static_cast<Rank>(below(2));
      auto& mine = unreceived[static_cast<std::size_t>(1 - rank)];
      if (const std::size_t action = below(10); action == 0 && step < 300) {
        const std::size_t count = kCounts[below(kCounts.size())];
        send(rank, memory.emplace_back(count));
        unreceived[static_cast<std::size_t>(rank)].push_back(count);
      } else if (action == 1 && !mine.empty()) {
        receive(rank, memory.emplace_back(mine.front()), 1 - rank);
        mine.erase(mine.begin());
      } else {
        box(rank).advance();
      }
      for (const Rank one : {0, 1}) {
        if (has_event(*end(one).transport, box(one))) continue;
        const bool has_work = box(one).has_work();
        ASSERT_EQ(box(one).advance(), has_work) << "rank " << one << ", seed " << seed;
      }
    }
  }
}

TEST_F(MailboxTest, ALargeMessageCountsAsSentWhenItIsTaken) {
  constexpr std::size_t kCount = 500'000;
  const std::vector<float> data = numbers(kCount);
  auto* const placed =
      reinterpret_cast<float*>(end(0).transport->window()->allocate(Bytes(kCount * sizeof(float))));
  std::ranges::copy(data, placed);
  for (const float* out : {data.data(), static_cast<const float*>(placed)}) {
    EXPECT_TRUE(box(0).is_sent());
    box(0).send(std::make_shared<Ticket>("send", Timeout(60'000)),
                {1, {}, DType::kF32, Elements(kCount)},
                reinterpret_cast<const std::byte*>(out));
    settle();
    EXPECT_FALSE(box(0).is_busy());  // the offer has left
    EXPECT_FALSE(box(0).is_sent());
    std::vector<float> in(kCount);
    receive(1, in, 0);
    settle();
    EXPECT_TRUE(box(0).is_sent());
    EXPECT_EQ(in, data);
  }
}

TEST_F(MailboxTest, AMessageThatHasNotLeftDoesNotCountAsSent) {
  connect({.most_per_call = 20_B, .idle_calls = 1});
  ASSERT_TRUE(send_at_once(0, numbers(3)));
  EXPECT_FALSE(box(0).is_sent());
  settle();
  EXPECT_TRUE(box(0).is_sent());
}

TEST_F(MailboxTest, APeerReceivesTheOperationOfABlockedRank) {
  engine::ProgressReport report;
  report.fingerprint.sequence = 7;
  report.fingerprint.operation = Operation::kGather;
  report.before = 77;
  box(0).send_progress_report(1, report);
  settle();
  EXPECT_EQ(end(1).progress_reports.at(0), report);
}

}  // namespace
}  // namespace peal::mail
