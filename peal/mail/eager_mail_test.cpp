// Both ends of the flow control of small messages, without their mailboxes.
#include "peal/mail/eager_mail.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "peal/transport/memory/memory.h"

namespace peal::mail {
namespace {

/// The cost of four messages of 744 bytes.
constexpr Bytes kBound = 4000_B;
constexpr Bytes kPayload = 744_B;

TEST(EagerBoundTest, AllPeersTogetherMayUseAQuarterOfAGibibyte) {
  EXPECT_EQ(eager_bound(1), 16_MiB);
  EXPECT_EQ(eager_bound(16), 16_MiB);
  EXPECT_EQ(eager_bound(256), 1_MiB);
  EXPECT_EQ(eager_bound(100'000), kEagerLimit + kKeepingCost);
}

class EagerSendsTest : public ::testing::Test {
 protected:
  TicketPtr hold(std::uint64_t id) {
    auto ticket = std::make_shared<Ticket>("a message", Timeout(60'000));
    sends_.hold({ticket, {.id = id, .payload = kPayload}, data_});
    return ticket;
  }
  void fill() {
    for (int i = 0; i < 4; ++i) sends_.sent(kPayload);
  }

  std::vector<std::byte> data_ = std::vector<std::byte>(kPayload.value);
  EagerSends sends_{kBound};
};

TEST_F(EagerSendsTest, AdmitsMessagesUntilTheBoundIsReached) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(sends_.admits(kPayload)) << i;
    sends_.sent(kPayload);
  }
  EXPECT_FALSE(sends_.admits(kPayload));
  EXPECT_FALSE(sends_.admits(0_B));  // an empty message is kept as well
  EXPECT_EQ(sends_.unreceived(), (MessageCount{4, kPayload * 4}));
  EXPECT_TRUE(sends_.give_back({1, kPayload}));
  EXPECT_TRUE(sends_.admits(kPayload));
}

TEST_F(EagerSendsTest, RejectsMoreCreditThanWasSent) {
  sends_.sent(kPayload);
  for (const MessageCount& wrong :
       {MessageCount{2, kPayload}, {1, kPayload + 1_B}, {-1, 0_B}, {1, Bytes(-1)}}) {
    EXPECT_FALSE(sends_.give_back(wrong));
  }
  EXPECT_TRUE(sends_.give_back({1, kPayload}));
  EXPECT_FALSE(sends_.give_back({1, 0_B}));
}

TEST_F(EagerSendsTest, AHeldMessageIsNotOvertaken) {
  fill();
  hold(7);
  EXPECT_TRUE(sends_.give_back({1, kPayload}));
  EXPECT_FALSE(sends_.admits(0_B));
  EXPECT_EQ(sends_.release()->frame.id, 7U);
  EXPECT_FALSE(sends_.has_held());
}

TEST_F(EagerSendsTest, HeldMessagesAreReleasedInOrderAndCount) {
  fill();
  for (const std::uint64_t id : {3u, 4u, 5u}) hold(id);
  EXPECT_FALSE(sends_.release());
  EXPECT_TRUE(sends_.give_back({2, kPayload * 2}));
  EXPECT_EQ(sends_.release()->frame.id, 3U);
  EXPECT_EQ(sends_.release()->frame.id, 4U);
  EXPECT_FALSE(sends_.release());
  EXPECT_TRUE(sends_.has_held());
}

TEST_F(EagerSendsTest, AMessageAcceptedByItsReceiveDoesNotCount) {
  fill();
  const TicketPtr ticket = hold(3);
  EXPECT_TRUE(sends_.holds(*ticket));
  EXPECT_FALSE(sends_.take(4));
  EXPECT_EQ(sends_.take(3)->ticket, ticket);
  EXPECT_FALSE(sends_.take(3));
  EXPECT_FALSE(sends_.holds(*ticket));
  EXPECT_EQ(sends_.unreceived().messages, 4);
}

TEST_F(EagerSendsTest, HeldMessagesAreSentWhenTheStreamIsIdle) {
  const auto ranks = transport::make_memory_transports(2);
  FrameStream stream(1, ranks[0]->mail());
  fill();
  const TicketPtr ticket = hold(3);
  EXPECT_FALSE(sends_.post_next(stream));
  EXPECT_TRUE(sends_.give_back({4, kPayload * 4}));
  stream.post({.kind = Frame::Kind::kAccept});
  EXPECT_FALSE(sends_.can_post(stream));
  EXPECT_FALSE(sends_.post_next(stream));
  stream.pump_out();
  EXPECT_TRUE(sends_.can_post(stream));
  EXPECT_TRUE(sends_.post_next(stream));
  stream.pump_out();
  EXPECT_TRUE(ticket->ended());
  EXPECT_FALSE(sends_.post_next(stream));
}

class EagerReceivesTest : public ::testing::Test {
 protected:
  void come(int times) {
    for (int i = 0; i < times; ++i) EXPECT_TRUE(receives_.came(kPayload));
  }
  Matching::Position offer() { return offers_.keep(0, {}); }

  Matching offers_;
  EagerReceives receives_{kBound};
};

TEST_F(EagerReceivesTest, DetectsAPeerThatBreaksTheBound) {
  come(4);
  EXPECT_FALSE(receives_.came(0_B));
  receives_.taken(kPayload);
  EXPECT_FALSE(receives_.came(kPayload));  // the peer has no credit yet
  receives_.give_back();
  EXPECT_TRUE(receives_.came(kPayload));
}

TEST_F(EagerReceivesTest, GivesBackCreditAtAQuarterOfTheBound) {
  receives_ = EagerReceives(8000_B);
  come(2);
  receives_.taken(kPayload);
  EXPECT_FALSE(receives_.owes(std::nullopt));
  receives_.taken(kPayload);
  EXPECT_TRUE(receives_.owes(std::nullopt));
  EXPECT_FALSE(receives_.owes(Departure::kNormal));  // the peer has left and sends nothing more
  EXPECT_EQ(receives_.give_back(), (MessageCount{2, kPayload * 2}));
  EXPECT_FALSE(receives_.owes(std::nullopt));
}

TEST_F(EagerReceivesTest, GivesBackCreditSoonToAPeerThatHoldsMessagesBack) {
  receives_ = EagerReceives(64'000_B);
  come(3);
  receives_.taken(0_B);
  EXPECT_FALSE(receives_.owes(std::nullopt));
  EXPECT_TRUE(receives_.offered(7, offer()));
  EXPECT_FALSE(receives_.owes(std::nullopt));  // not for each message
  receives_.taken(kPayload);
  EXPECT_TRUE(receives_.owes(std::nullopt));
  EXPECT_TRUE(receives_.owes(Departure::kNormal));
  EXPECT_EQ(receives_.give_back(), (MessageCount{2, kPayload}));
  EXPECT_FALSE(receives_.owes(std::nullopt));
}

TEST_F(EagerReceivesTest, GivesBackAllCreditToAHoldingPeerWhenNoMessageIsKept) {
  receives_ = EagerReceives(1_MiB);
  come(1);
  EXPECT_TRUE(receives_.offered(7, offer()));
  receives_.taken(kPayload);
  EXPECT_TRUE(receives_.owes(std::nullopt));
}

TEST_F(EagerReceivesTest, AnOfferCanBeTakenOnce) {
  const Matching::Position place = offer();
  EXPECT_TRUE(receives_.offered(7, place));
  EXPECT_FALSE(receives_.offered(7, place));
  EXPECT_FALSE(receives_.take_offer(8));
  EXPECT_EQ(receives_.take_offer(7), place);
  EXPECT_FALSE(receives_.take_offer(7));
}

}  // namespace
}  // namespace peal::mail
