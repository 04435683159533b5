// Messages that the receiver copies from the sender's memory: alone, and between mailboxes.
#include "peal/mail/placed_mail.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/mail/testing/mailboxes.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/testing/testing.h"

namespace peal::mail {
namespace {

using testing::MailboxTest;
using transport::testing::stream_bytes;

/// Rank 0 sends and rank 1 receives.
class PlacedMailTest : public ::testing::Test {
 protected:
  static constexpr Bytes kArena = 16_MiB;
  static constexpr Bytes kNoneIsStreamed = kArena;

  PlacedMail sender() { return {0, 1, ranks_[0]->window(), kNoneIsStreamed}; }
  PlacedMail receiver(Bytes streamed = kNoneIsStreamed) {
    return {1, 0, ranks_[1]->window(), streamed};
  }

  /// Memory of rank 0's arena with these bytes.
  std::span<std::byte> allocate(const std::vector<std::byte>& bytes) {
    std::byte* const memory = ranks_[0]->window()->allocate(Bytes(std::ssize(bytes)));
    std::ranges::copy(bytes, memory);
    return {memory, bytes.size()};
  }

  static Receive receive_into(std::vector<std::byte>& data) {
    const Elements count(static_cast<std::int64_t>(data.size()));
    return {std::make_shared<Ticket>("recv", Timeout(60'000)),
            {0, {}, DType::kU8, count},
            data.data(),
            0_B};
  }
  static Frame offer_of(transport::ArenaOffset place, std::uint64_t id = 1) {
    return {.kind = Frame::Kind::kPlaced, .id = id, .place = place.value};
  }
  /// An offer of rank 0's memory.
  Frame offer_of(std::span<const std::byte> data, std::uint64_t id = 1) {
    const auto place = sender().place(data.data(), Bytes(static_cast<std::int64_t>(data.size())));
    return offer_of(place.value(), id);
  }

  std::vector<std::unique_ptr<transport::Transport>> ranks_ =
      transport::make_memory_transports(2, {.arena = kArena});
};

TEST_F(PlacedMailTest, AMessageIsCopiedPieceByPieceFromTheSendersMemory) {
  for (const Bytes streamed : {0_B, kNoneIsStreamed}) {
    const auto data = stream_bytes(0, 1, 0, (2 << 20) + (10 << 10));
    std::vector<std::byte> in(data.size());
    const Receive receive = receive_into(in);
    PlacedMail mail = receiver(streamed);
    EXPECT_FALSE(mail.is_copying());
    ASSERT_TRUE(mail.start(offer_of(allocate(data), 5), receive));
    for (int piece = 0; piece < 3; ++piece) {
      EXPECT_TRUE(mail.is_copying());
      EXPECT_FALSE(mail.take_copied());
      EXPECT_TRUE(mail.copy_next_piece());
    }
    const auto copied = mail.take_copied();
    ASSERT_TRUE(copied);
    EXPECT_EQ(copied->id, 5u);
    EXPECT_EQ(copied->ticket, receive.ticket);
    EXPECT_FALSE(copied->ticket->ended());  // its sender is notified first
    EXPECT_FALSE(mail.is_copying());
    EXPECT_FALSE(mail.copy_next_piece());
    EXPECT_EQ(in, data);
  }
}

TEST_F(PlacedMailTest, MessagesAreCopiedOneAfterAnother) {
  const auto bytes = stream_bytes(0, 1, 0, 10);
  const auto others = stream_bytes(0, 1, 10, 20);
  std::vector<std::byte> first(10);
  std::vector<std::byte> second(20);
  PlacedMail mail = receiver();
  ASSERT_TRUE(mail.start(offer_of(allocate(bytes), 1), receive_into(first)));
  ASSERT_TRUE(mail.start(offer_of(allocate(others), 2), receive_into(second)));
  for (const std::uint64_t id : {1u, 2u}) {
    EXPECT_TRUE(mail.copy_next_piece());
    const auto copied = mail.take_copied();
    ASSERT_TRUE(copied);
    EXPECT_EQ(copied->id, id);
  }
  EXPECT_EQ(first, bytes);
  EXPECT_EQ(second, others);
}

TEST_F(PlacedMailTest, OnlyMemoryOfTheArenaHasAPlace) {
  const std::vector<std::byte> elsewhere(100'000);
  EXPECT_FALSE(sender().place(elsewhere.data(), 100'000_B));
  const auto data = allocate(stream_bytes(0, 1, 0, 100'000));
  EXPECT_TRUE(sender().place(data.data(), 100'000_B));
  EXPECT_FALSE(PlacedMail(0, 1, nullptr, kNoneIsStreamed).place(data.data(), 100'000_B));
  const Rank stranger = 2;  // the window does not reach it
  PlacedMail mail(0, stranger, ranks_[0]->window(), kNoneIsStreamed);
  EXPECT_FALSE(mail.place(data.data(), 100'000_B));
}

TEST_F(PlacedMailTest, BytesOnSharedPagesAreCopiedWhenTheMessageIsPlaced) {
  const auto memory = std::make_unique<std::byte[]>(100'000);
  ranks_[0]->window()->register_memory({memory.get(), 100'000});
  const auto data = stream_bytes(0, 1, 0, 100'000);
  std::ranges::copy(data, memory.get());
  std::vector<std::byte> in(100'000);
  PlacedMail mail = receiver();
  ASSERT_TRUE(mail.start(offer_of({memory.get(), 100'000}), receive_into(in)));
  EXPECT_TRUE(mail.copy_next_piece());
  EXPECT_TRUE(mail.take_copied());
  EXPECT_EQ(in, data);
  ranks_[0]->window()->deregister_memory(memory.get());
}

TEST_F(PlacedMailTest, RejectsAnOfferOfMemoryThatIsNotShared) {
  std::vector<std::byte> in(100);
  const Frame good = offer_of(allocate(stream_bytes(0, 1, 0, 100)));
  EXPECT_FALSE(PlacedMail(1, 0, nullptr, kNoneIsStreamed).start(good, receive_into(in)));
  PlacedMail mail = receiver();
  EXPECT_FALSE(mail.start(offer_of({UINT64_MAX - 99}), receive_into(in)));
  const auto end = static_cast<std::uint64_t>(kArena.value);
  EXPECT_FALSE(mail.start(offer_of({end - 99}), receive_into(in)));
  EXPECT_FALSE(mail.is_copying());
}

TEST_F(PlacedMailTest, AWithdrawnMessageIsNotReceived) {
  std::vector<std::byte> in(2 << 20);
  for (const int copied_before : {0, 1, 2}) {
    ranks_ = transport::make_memory_transports(2, {.arena = kArena});
    PlacedMail mail = receiver();
    ASSERT_TRUE(mail.start(offer_of(allocate(stream_bytes(0, 1, 0, 2 << 20))), receive_into(in)));
    for (int i = 0; i < copied_before; ++i) EXPECT_TRUE(mail.copy_next_piece());
    ranks_[0]->window()->withdraw();
    EXPECT_FALSE(mail.copy_next_piece());
    EXPECT_FALSE(mail.take_copied());
    EXPECT_TRUE(mail.is_copying());  // it waits for the report of the failure
  }
}

TEST_F(PlacedMailTest, AClearedReceiveIsNotWritten) {
  std::vector<std::byte> in(100);
  PlacedMail mail = receiver();
  ASSERT_TRUE(mail.start(offer_of(allocate(stream_bytes(0, 1, 0, 100))), receive_into(in)));
  mail.clear();
  EXPECT_FALSE(mail.is_copying());
  EXPECT_FALSE(mail.copy_next_piece());
  EXPECT_THAT(in, ::testing::Each(std::byte{0}));
}

/// Mailboxes whose messages lie where the receiver can read them.
class PlacedMailboxTest : public MailboxTest {
 protected:
  static constexpr std::size_t kCount = 1'000'000;  // several pieces
  PlacedMailboxTest() : placed_(allocate(0)) {}

  transport::Window& window(Rank rank) { return *end(rank).transport->window(); }
  /// A message with the values 1, 2, 3 and so on.
  std::span<float> allocate(Rank rank) {
    auto* const memory =
        reinterpret_cast<float*>(window(rank).allocate(Bytes(kCount * sizeof(float))));
    std::iota(memory, memory + kCount, 1.F);
    return {memory, kCount};
  }
  TicketPtr send_placed() {
    auto ticket = std::make_shared<Ticket>("send", Timeout(60'000));
    box(0).send(ticket,
                {1, {}, DType::kF32, Elements(kCount)},
                reinterpret_cast<const std::byte*>(placed_.data()));
    return ticket;
  }

  std::span<float> placed_;
};

TEST_F(PlacedMailboxTest, AMessageInSharedMemoryDoesNotPassTheChannel) {
  // The stream breaks long before that many bytes.
  using Direction = transport::StreamFault::Direction;
  connect({.streams = {{.peer = 1,
                        .channel = transport::ChannelKind::kMail,
                        .direction = Direction::kSending,
                        .after = 1_KiB}}});
  placed_ = allocate(0);
  std::vector<float> in(kCount);
  const TicketPtr sent = send_placed();
  settle();
  EXPECT_FALSE(sent->ended());  // the receiver is late
  const TicketPtr received = receive(1, in, 0);
  settle();
  EXPECT_TRUE(sent->ended());
  EXPECT_TRUE(received->ended());
  EXPECT_THAT(end(0).failures, ::testing::IsEmpty());
  EXPECT_TRUE(std::ranges::equal(in, placed_));
}

TEST_F(PlacedMailboxTest, AReceiveDoesNotSucceedAfterTheSenderHasFailed) {
  std::vector<float> in(kCount);
  send_placed();
  const TicketPtr received = receive(1, in, 0);
  box(1).advance();  // a piece of it
  EXPECT_TRUE(box(1).is_busy());
  box(0).fail(Error(ErrorKind::kTimeout, "a rank is late"));
  for (int i = 0; i < 100; ++i) box(1).advance();
  EXPECT_FALSE(received->ended());
  box(0).tell_abort(Error(ErrorKind::kTimeout, "a rank is late"));
  settle();
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_EQ(end(1).failures[0], "timeout: a rank is late");
}

TEST_F(PlacedMailboxTest, ADeadSenderIsALostPeerButItsMemoryCanStillBeRead) {
  std::vector<float> in(kCount);
  send_placed();
  receive(1, in, 0);
  box(1).advance();
  EXPECT_TRUE(box(1).is_busy());
  end(0).mailbox.reset();
  end(0).transport.reset();
  for (int i = 0; i < 600; ++i) box(1).advance();
  EXPECT_THAT(end(1).lost, ::testing::ElementsAre(0));
}

}  // namespace
}  // namespace peal::mail
