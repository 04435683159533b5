// Mailboxes whose small messages reach the bound, driven by hand over the memory transport.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"
#include "peal/mail/testing/mailboxes.h"

namespace peal::mail {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MailboxTest;

/// A kept message costs 1000 bytes, and four messages fill the bound.
constexpr std::size_t kMessageElements = 186;
constexpr Bytes kMessageSize = bytes_of(Elements(kMessageElements), DType::kF32);
constexpr Bytes kFourMessages = 4 * (kMessageSize + kKeepingCost);

class MailFlowTest : public MailboxTest {
 protected:
  MailFlowTest() { connect_plain(kFourMessages); }

  static std::vector<float> message(float value) {
    return std::vector<float>(kMessageElements, value);
  }

  /// Sends messages with the values 0, 1, 2 and so on.
  void send_many(Rank from, int times, Tag tag = {}) {
    for (int i = 0; i < times; ++i) {
      sent_.push_back(send(from, memory_.emplace_back(message(static_cast<float>(i))), tag));
    }
    settle();
  }
  std::int64_t ended() const {
    return std::ranges::count_if(sent_, [](const TicketPtr& ticket) { return ticket->ended(); });
  }
  /// The value that a receive gets at once; -1 if no message is there.
  float received(Rank at, Rank from, Tag tag = {}) {
    std::vector<float>& in = memory_.emplace_back(message(-1));
    const TicketPtr ticket = receive(at, in, from, tag);
    settle();
    if (!ticket->ended() || std::ranges::count(in, in[0]) != std::ssize(in)) return -1;
    return in[0];
  }
  TicketPtr send_to_self(std::vector<float>& data, Tag tag = {}) {
    auto ticket = std::make_shared<Ticket>("send", Timeout(60'000), 0);
    box(0).send(ticket,
                {0, tag, DType::kF32, Elements(std::ssize(data))},
                reinterpret_cast<const std::byte*>(data.data()));
    sent_.push_back(ticket);
    return ticket;
  }

  std::list<std::vector<float>> memory_;
  std::vector<TicketPtr> sent_;
};

TEST_F(MailFlowTest, ASenderIsHeldBackAtTheBound) {
  send_many(0, 100);
  EXPECT_EQ(ended(), 4);
  EXPECT_FALSE(send_at_once(0, message(1)));
  EXPECT_FALSE(box(0).is_sent());
  EXPECT_FALSE(box(0).is_busy());  // no work until an event comes
  EXPECT_FALSE(box(1).is_busy());
}

TEST_F(MailFlowTest, HeldMessagesLeaveAsTheReceiverTakesOthers) {
  send_many(0, 100);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(received(1, 0), static_cast<float>(i));
    EXPECT_EQ(ended(), std::min(i + 5, 100)) << i;
  }
  EXPECT_TRUE(box(0).is_sent());
  EXPECT_TRUE(send_at_once(0, message(1)));
}

TEST_F(MailFlowTest, AReceiveFindsAHeldMessageByTag) {
  send_many(0, 50);
  send_many(0, 1, Tag{7});
  send_many(0, 50);
  EXPECT_EQ(received(1, 0, Tag{7}), 0);
  EXPECT_TRUE(sent_[50]->ended());
  EXPECT_EQ(ended(), 5);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(received(1, kAnySource), static_cast<float>(i % 50));
}

TEST_F(MailFlowTest, WaitingReceivesTakeMessagesWithoutABound) {
  std::vector<TicketPtr> receives;
  std::deque<std::vector<float>> in;
  for (int i = 0; i < 100; ++i)
    receives.push_back(receive(1, in.emplace_back(kMessageElements), 0));
  send_many(0, 100);
  EXPECT_EQ(ended(), 100);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(in[i], message(static_cast<float>(i)));
  EXPECT_TRUE(box(0).is_sent());
}

TEST_F(MailFlowTest, DueCreditCountsAsWork) {
  for (int round = 0; round < 50; ++round) {
    EXPECT_TRUE(send_at_once(0, message(1))) << round;
    settle();
    std::vector<float> in(kMessageElements);
    EXPECT_TRUE(receive(1, in, 0)->ended());
    EXPECT_TRUE(box(1).has_work());
    EXPECT_TRUE(box(1).has_work(0));
    EXPECT_TRUE(box(1).is_busy());
    box(1).advance();
    EXPECT_FALSE(box(1).is_busy());
    box(0).advance();
  }
}

TEST_F(MailFlowTest, AReceiveMayBeCalledWhileItsHeldMessageArrives) {
  for (unsigned steps = 0; steps < 60; steps += kSanitized ? 7 : 1) {
    ends_.clear();
    connect({.most_per_call = 100_B}, 2, kFourMessages);
    sent_.clear();
    send_many(0, 6);
    EXPECT_EQ(received(1, 0), 0);  // so that message 4 may come
    std::vector<std::vector<float>> in(5, message(-1));
    std::vector<TicketPtr> receives;
    for (std::size_t i = 0; i < 5; ++i) {
      for (unsigned k = 0; k < steps; ++k) box(k % 2 == 0 ? 0 : 1).advance();
      receives.push_back(receive(1, in[i], 0));
    }
    settle();
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_TRUE(receives[i]->ended());
      EXPECT_EQ(in[i], message(static_cast<float>(i + 1))) << steps;
    }
    EXPECT_EQ(ended(), 6);
    EXPECT_THAT(end(1).failures, IsEmpty());
  }
}

TEST_F(MailFlowTest, BothDirectionsMayReachTheBound) {
  send_many(0, 50);
  send_many(1, 50);
  EXPECT_EQ(ended(), 8);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(received(0, 1), static_cast<float>(i));
    EXPECT_EQ(received(1, 0), static_cast<float>(i));
  }
  EXPECT_EQ(ended(), 100);
}

TEST_F(MailFlowTest, TheBoundAlsoCountsEmptyMessages) {
  const std::vector<float> nothing;
  std::vector<float> in;
  for (int i = 0; i < 100; ++i) sent_.push_back(send(0, nothing));
  settle();
  EXPECT_EQ(ended(), kFourMessages / kKeepingCost);
  for (int i = 0; i < 100; ++i) {
    const TicketPtr got = receive(1, in, 0);
    settle();
    EXPECT_TRUE(got->ended()) << i;
  }
  EXPECT_EQ(ended(), 100);
}

TEST_F(MailFlowTest, HeldMessagesAreDeliveredAfterTheLeaveNotice) {
  send_many(0, 20);
  box(0).send_leave(Departure::kNormal);
  settle();
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(box(0).is_sent() && i < 12) << i;
    EXPECT_EQ(received(1, 0), static_cast<float>(i));
  }
  EXPECT_EQ(ended(), 20);
  EXPECT_TRUE(box(0).is_sent());
  EXPECT_THAT(end(1).failures, IsEmpty());
}

TEST_F(MailFlowTest, AHeldMessageFailsWhenItsReceiverLeaves) {
  send_many(0, 5);
  box(1).send_leave(Departure::kNormal);
  settle();
  ASSERT_THAT(end(0).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(0).failures[0], HasSubstr("can never be delivered"));
}

TEST_F(MailFlowTest, AfterAFailureHeldMessagesAreNotTouched) {
  send_many(0, 20);
  send_many(1, 20);
  const Error cause(ErrorKind::kTimeout, "a rank is late");
  box(0).fail(cause);
  EXPECT_EQ(ended(), 40 - 16);
  memory_.clear();  // the sanitizer would see a touch
  box(0).tell_abort(cause);
  settle();
  EXPECT_THAT(end(1).failures, ::testing::ElementsAre("timeout: a rank is late"));
  box(1).fail(cause);
  settle();
  EXPECT_EQ(ended(), 40);
}

TEST_F(MailFlowTest, AHeldMessageReportsTheMessagesBeforeIt) {
  send_many(0, 4);
  auto ticket = std::make_shared<Ticket>("send", Timeout(60'000), 1);
  EXPECT_EQ(box(0).held_behind(*ticket), std::nullopt);
  const std::vector<float> data = message(1);
  box(0).send(ticket,
              {1, {}, DType::kF32, Elements(kMessageElements)},
              reinterpret_cast<const std::byte*>(data.data()));
  EXPECT_EQ(box(0).held_behind(*ticket), (MessageCount{4, 4 * kMessageSize}));
  EXPECT_EQ(received(1, 0), 0);
  EXPECT_EQ(box(0).held_behind(*ticket), std::nullopt);
}

// ---- to this rank itself

TEST_F(MailFlowTest, MessagesOfARankToItselfAreHeldBackAtTheBound) {
  for (int i = 0; i < 10; ++i) {
    send_to_self(memory_.emplace_back(message(static_cast<float>(i))), Tag{i % 2});
  }
  EXPECT_EQ(ended(), 4);
  EXPECT_NE(box(0).held_behind(*sent_[4]), std::nullopt);
  EXPECT_EQ(received(0, 0, Tag{1}), 1);
  EXPECT_EQ(ended(), 5);  // the message is kept at its place in the queue
  EXPECT_EQ(received(0, 0, Tag{1}), 3);
  EXPECT_EQ(received(0, kAnySource, Tag{1}), 5);
  EXPECT_EQ(received(0, 0, Tag{1}), 7);
  EXPECT_EQ(received(0, 0, Tag{1}), 9);
  for (int i = 0; i < 10; i += 2) EXPECT_EQ(received(0, 0), static_cast<float>(i));
  EXPECT_EQ(ended(), 10);
}

TEST_F(MailFlowTest, ASmallerMessageToItselfIsKeptWhenTheLargerOneBeforeItIsReceived) {
  for (int i = 0; i < 3; ++i) send_to_self(memory_.emplace_back(message(1)));
  constexpr std::size_t kMore = 2 * kMessageElements;  // with the three, more than the bound
  const TicketPtr larger = send_to_self(memory_.emplace_back(kMore), Tag{1});
  const TicketPtr smaller = send_to_self(memory_.emplace_back(1), Tag{2});
  EXPECT_FALSE(larger->ended());
  EXPECT_FALSE(smaller->ended());
  EXPECT_TRUE(receive(0, memory_.emplace_back(kMore), 0, Tag{1})->ended());
  EXPECT_TRUE(larger->ended());
  EXPECT_TRUE(smaller->ended());
  EXPECT_FALSE(box(0).is_busy());
}

TEST_F(MailFlowTest, OneMessageToItselfIsAlwaysKept) {
  std::vector<float> large(100'000, 3);
  EXPECT_TRUE(send_to_self(large)->ended());
  large.assign(large.size(), 4);
  EXPECT_FALSE(send_to_self(large)->ended());
  EXPECT_FALSE(send_to_self(memory_.emplace_back(message(1)))->ended());
  for (const float value : {3.F, 4.F}) {
    std::vector<float> in(100'000);
    EXPECT_TRUE(receive(0, in, 0)->ended());
    EXPECT_EQ(in, std::vector<float>(100'000, value));
  }
  EXPECT_EQ(ended(), 3);
  EXPECT_EQ(received(0, 0), 1);
}

TEST_F(MailFlowTest, AMessageToItselfWithAWaitingReceiveIsNotCounted) {
  for (int i = 0; i < 20; ++i) {
    std::vector<float> in(kMessageElements);
    const TicketPtr got = receive(0, in, 0);
    EXPECT_TRUE(send_to_self(memory_.emplace_back(message(2)))->ended());
    EXPECT_TRUE(got->ended());
    EXPECT_EQ(in, message(2));
  }
}

// ---- random runs

/// One message of a random run. Its value identifies the message.
struct Letter {
  Tag tag;
  std::size_t count = 0;
  float value = 0;
};

/// Three ranks send to all ranks, themselves included, more than the bound allows. Each rank
/// receives in a random order; only messages of one source and tag keep their order. All receives
/// end.
TEST_F(MailFlowTest, AllMessagesOfRandomRunsArriveInOrder) {
  constexpr Rank kRanks = 3;
  constexpr std::array<std::size_t, 6> kCounts = {0, 1, 100, 4'096, 4'097, 30'000};
  for (unsigned seed = 0; seed < (kSanitized ? 6 : 60); ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t bound) { return random() % bound; };
    transport::Faults faults{.seed = seed};
    if (seed % 3 == 1) faults.most_per_call = 3'000_B;
    const Bytes bound(static_cast<std::int64_t>(below(2) == 0 ? 17'000 : 70'000));
    ends_.clear();
    connect(faults, kRanks, bound);
    std::list<std::vector<float>> memory;
    std::vector<TicketPtr> tickets;
    std::array<std::array<std::deque<Letter>, kRanks>, kRanks> letters;  // to, from
    float value = 0;
    for (int i = 0; i < 200; ++i) {
      const auto from = static_cast<Rank>(below(kRanks));
      const auto to = static_cast<Rank>(below(kRanks));
      const Letter letter{Tag{static_cast<std::int32_t>(below(3))}, kCounts[below(6)], ++value};
      const auto& data = memory.emplace_back(letter.count, letter.value);
      tickets.push_back(std::make_shared<Ticket>("send", Timeout(60'000), to));
      box(from).send(tickets.back(),
                     {to, letter.tag, DType::kF32, Elements(std::ssize(data))},
                     reinterpret_cast<const std::byte*>(data.data()));
      letters[static_cast<std::size_t>(to)][static_cast<std::size_t>(from)].push_back(letter);
      if (below(4) == 0) box(static_cast<Rank>(below(kRanks))).advance();
    }
    struct Expected {
      TicketPtr ticket;
      const std::vector<float>* in;
      float value;
    };
    std::vector<Expected> expected;
    for (std::size_t left = 200; left > 0;) {
      const std::size_t to = below(kRanks), from = below(kRanks);
      auto& queue = letters[to][from];
      if (queue.empty()) continue;
      const Tag tag = queue[below(queue.size())].tag;
      const auto first =
          std::ranges::find_if(queue, [&](const Letter& letter) { return letter.tag == tag; });
      auto& in = memory.emplace_back(first->count, -1.F);
      expected.push_back(
          {receive(static_cast<Rank>(to), in, static_cast<Rank>(from), tag), &in, first->value});
      queue.erase(first);
      --left;
      for (std::size_t k = below(4); k > 0; --k) box(static_cast<Rank>(below(kRanks))).advance();
    }
    settle();
    for (const Expected& one : expected) {
      ASSERT_TRUE(one.ticket->ended()) << "seed " << seed;
      EXPECT_EQ(std::ranges::count(*one.in, one.value), std::ssize(*one.in)) << "seed " << seed;
    }
    for (const TicketPtr& ticket : tickets) ASSERT_TRUE(ticket->ended()) << "seed " << seed;
    for (Rank rank = 0; rank < kRanks; ++rank) {
      EXPECT_THAT(end(rank).failures, IsEmpty());
      EXPECT_FALSE(box(rank).is_busy());
      EXPECT_TRUE(box(rank).is_sent());
    }
  }
}

}  // namespace
}  // namespace peal::mail
