// The mailbox as the state machine that it is: driven by hand, over the memory transport.
#include "peal/engine/mailbox.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/engine/testing/mailboxes.h"
#include "peal/transport/pollable.h"

namespace peal::engine {
namespace {

using ::testing::HasSubstr;
using testing::MailboxTest;

/// 1, 2, 3 and so on.
std::vector<float> numbers(std::size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1.F);
  return numbers;
}

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

/// As on a ring, where part of a message fits.
TEST_F(MailboxTest, WhatIsSentAtOnceIsBorrowedNoMore) {
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

TEST_F(MailboxTest, NothingIsSentAtOncePastWhatWaits) {
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

TEST_F(MailboxTest, WhatCannotBeSentAtOnceIsLeftToTheSendThatSaysWhy) {
  const std::vector<float> large(8'192);
  EXPECT_FALSE(send_at_once(0, large));
  box(1).say_farewell(Departure::kInOrder);
  settle();
  EXPECT_FALSE(send_at_once(0, {1}));
  box(0).fail(Error(ErrorKind::kTimeout, "it took too long"));
  EXPECT_FALSE(send_at_once(0, {1}));
}

TEST_F(MailboxTest, AReceiveThatComesWhileItsMessageIsComingGetsItWhole) {
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

TEST_F(MailboxTest, ALargeMessageStaysWithItsSenderUntilItsReceiveIsThere) {
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

/// The round of a calling thread may take the accept and end its own operation. Then no event comes
/// for the rest of the message, and the thread that sleeps must be called.
TEST_F(MailboxTest, AnAcceptedMessageWhoseFirstPieceHasLeftIsWork) {
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

/// Whether the channel has an event for a driver that sleeps until the mailbox's interests.
bool has_event(transport::Transport& transport, const Mailbox& mailbox) {
  std::vector<transport::Interest> interests;
  mailbox.add_interests(interests);
  auto& channel = dynamic_cast<transport::PollableChannel&>(transport.mail());
  std::vector<pollfd> entries;
  const bool would_sleep = channel.prepare(interests, entries);
  channel.finish(entries);
  return !would_sleep;
}

/// The truth about `has_work`: without an event, `advance` moves something if and only if the
/// mailbox says so.
TEST_F(MailboxTest, AMailboxWithoutAnEventHasWorkIfAndOnlyIfItMoves) {
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

TEST_F(MailboxTest, AfterAFailureNoBorrowedMemoryIsTouchedAndThePeerHearsTheCause) {
  auto out = std::make_unique<std::vector<float>>(numbers(500'000));
  auto in = std::make_unique<std::vector<float>>(500'000);
  const TicketPtr sent = send(0, *out);
  const TicketPtr received = receive(1, *in, 0);
  box(0).advance();
  box(1).advance();
  box(0).advance();  // a part of it is under way
  const Error cause(ErrorKind::kTimeout, "somebody is late");
  box(0).fail(cause);
  out.reset();  // the sanitizer would see a touch
  box(0).tell_abort(cause);
  settle();
  EXPECT_TRUE(sent->exception());
  EXPECT_FALSE(received->ended());  // its end is the driver's matter: it was told
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_EQ(end(1).failures[0], "timeout: somebody is late");
  box(1).fail(cause);
  in.reset();
  settle();
  EXPECT_TRUE(received->exception());
}

TEST_F(MailboxTest, AFarewellIsNoLossUnlessSomethingIsStillExpected) {
  box(0).say_farewell(Departure::kInOrder);
  settle();
  end(0).mailbox.reset();
  end(0).transport.reset();
  for (int i = 0; i < 600; ++i) box(1).advance();
  EXPECT_EQ(box(1).departure(0), Departure::kInOrder);
  EXPECT_THAT(end(1).lost, ::testing::IsEmpty());
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());

  std::vector<float> in(3);
  receive(1, in, 0);
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("has left the group"));
}

TEST_F(MailboxTest, WhoLeavesByAnExceptionIsNamedAlsoWhereAnyRankWouldDo) {
  for (const Rank source : {0, kAnySource}) {
    connect({});
    std::vector<float> in(3);
    receive(1, in, source);
    box(0).say_farewell(Departure::kByException);
    settle();
    EXPECT_EQ(box(1).departure(0), Departure::kByException);
    receive(1, in, source, Tag{1});
    ASSERT_THAT(end(1).failures, ::testing::SizeIs(2));
    for (const std::string& failure : end(1).failures) {
      EXPECT_THAT(failure, HasSubstr("peer_lost: rank 0 ("));
      EXPECT_THAT(failure, HasSubstr("has left the group because of an exception"));
    }
  }
}

TEST_F(MailboxTest, WhoLeftByAnExceptionIsNamedAlsoWhereOthersLeaveLater) {
  connect({}, 3);
  std::vector<float> in(3);
  receive(0, in, kAnySource);
  box(1).say_farewell(Departure::kByException);
  settle();
  EXPECT_THAT(end(0).failures, ::testing::IsEmpty());  // rank 2 may still send
  box(2).say_farewell(Departure::kInOrder);
  settle();
  ASSERT_THAT(end(0).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(0).failures[0], HasSubstr("peer_lost: rank 1 ("));
  EXPECT_THAT(end(0).failures[0], HasSubstr("has left the group because of an exception"));
}

TEST_F(MailboxTest, WhoLeavesWithoutTheMessageThatIsExpectedOfItIsNamed) {
  connect({}, 3);
  std::vector<float> in(3);
  receive(0, in, 2);
  box(1).say_farewell(Departure::kByException);
  settle();
  box(2).say_farewell(Departure::kInOrder);
  settle();
  ASSERT_THAT(end(0).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(0).failures[0], HasSubstr("peer_lost: rank 2 ("));
}

TEST_F(MailboxTest, AMessageThatCameBeforeTheFarewellCanStillBeReceived) {
  const std::vector<float> out = {4};
  std::vector<float> in(1);
  send(0, out);
  box(0).say_farewell(Departure::kInOrder);
  settle();
  EXPECT_TRUE(receive(1, in, 0)->ended());
  EXPECT_EQ(in, out);
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());
}

TEST_F(MailboxTest, AStreamThatEndsWithoutAFarewellIsALoss) {
  end(0).mailbox.reset();
  end(0).transport.reset();
  for (int i = 0; i < 600; ++i) box(1).advance();
  EXPECT_THAT(end(1).lost, ::testing::ElementsAre(0));
}

TEST_F(MailboxTest, ADamagedFrameEndsTheGroupAndNotTheProgram) {
  connect({.streams = {{.kind = transport::StreamFault::Kind::kCorrupt,
                        .peer = 1,
                        .channel = transport::ChannelKind::kMail}}});
  const std::vector<float> out = {1};
  send(0, out);
  settle();
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("damaged"));
}

TEST_F(MailboxTest, TheCauseIsReadBeforeAStreamThatTakesNothingMoreIsGivenUp) {
  const Error cause(ErrorKind::kTimeout, "somebody is late");
  box(0).fail(cause);
  box(0).tell_abort(cause);
  box(0).advance();
  end(0).mailbox.reset();
  end(0).transport.reset();
  const std::vector<float> out = {1};
  send(1, out);
  for (int i = 0; i < 600; ++i) box(1).advance();
  ASSERT_THAT(end(1).failures, ::testing::Not(::testing::IsEmpty()));
  EXPECT_EQ(end(1).failures[0], "timeout: somebody is late");
}

TEST_F(MailboxTest, AMessageThatTheOneWhoLeavesNeverTookIsAFailure) {
  connect({.most_per_call = 100_B, .idle_calls = 1});
  const std::vector<float> out = numbers(2'000);
  const TicketPtr sent = send(1, out);  // small enough to go uninvited, and still on its way
  box(1).advance();
  box(0).say_farewell(Departure::kInOrder);
  for (int i = 0; i < 20; ++i) box(0).advance() || box(1).advance();
  EXPECT_FALSE(sent->exception());
  ASSERT_THAT(end(1).failures, ::testing::Not(::testing::IsEmpty()));
  EXPECT_THAT(end(1).failures[0], HasSubstr("can never be delivered"));
}

TEST_F(MailboxTest, AReceiveFromAnyRankFailsWhenAllOthersHaveLeft) {
  std::vector<float> in(3);
  receive(1, in, kAnySource);
  settle();
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());
  box(0).say_farewell(Departure::kInOrder);
  settle();
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  receive(1, in, kAnySource, Tag{1});
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(2));
  EXPECT_THAT(end(1).failures.back(), HasSubstr("all other ranks have left"));
}

TEST_F(MailboxTest, WhatWasOfferedBeforeTheFarewellIsStillDelivered) {
  const std::vector<float> out = numbers(500'000);
  std::vector<float> in(500'000);
  const TicketPtr sent = send(0, out);
  box(0).say_farewell(Departure::kInOrder);
  settle();
  const TicketPtr received = receive(1, in, 0);
  settle();
  EXPECT_TRUE(sent->ended());
  EXPECT_TRUE(received->ended());
  EXPECT_FALSE(received->exception());
  EXPECT_EQ(in, out);
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());
}

TEST_F(MailboxTest, AnOfferWhoseSenderIsGoneCannotBeAccepted) {
  const std::vector<float> out = numbers(500'000);
  std::vector<float> in(500'000);
  send(0, out);
  box(0).say_farewell(Departure::kInOrder);
  settle();
  end(0).mailbox.reset();
  end(0).transport.reset();
  for (int i = 0; i < 600; ++i) box(1).advance();
  receive(1, in, 0);
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("can never be delivered"));
}

TEST_F(MailboxTest, AMessageThatFailsTheGroupEndsWithTheGroupsOwnCause) {
  const std::vector<float> out = {1};
  std::vector<float> in(2);
  send(0, out);
  const TicketPtr received = receive(1, in, 0);
  settle();
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));  // a mismatch
  EXPECT_FALSE(received->ended());
  box(1).fail(Error(ErrorKind::kTimeout, "somebody was first"));
  EXPECT_EQ(error_of([&] { std::rethrow_exception(received->exception()); }).kind(),
            ErrorKind::kTimeout);
}

TEST_F(MailboxTest, AfterAFailureLaterMessagesFailAtOnce) {
  box(0).fail(Error(ErrorKind::kTimeout, "somebody is late"));
  std::vector<float> data(3);
  EXPECT_TRUE(send(0, data)->exception());
  EXPECT_TRUE(receive(0, data, 1)->exception());
}

TEST_F(MailboxTest, ALargeMessageIsSentOnceItIsTaken) {
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

TEST_F(MailboxTest, WhatHasNotLeftIsNotSent) {
  connect({.most_per_call = 20_B, .idle_calls = 1});
  ASSERT_TRUE(send_at_once(0, numbers(3)));
  EXPECT_FALSE(box(0).is_sent());
  settle();
  EXPECT_TRUE(box(0).is_sent());
}

TEST_F(MailboxTest, NothingIsLeftToSendToWhoIsGone) {
  const std::vector<float> out = numbers(500'000);
  for (const int calls : {1, 1'000}) {  // the offer has left in part, and as a whole
    connect({.most_per_call = 20_B, .idle_calls = 1});
    send(0, out);
    for (int i = 1; i < calls; ++i) box(0).advance();
    EXPECT_EQ(box(0).is_busy(), calls == 1);
    EXPECT_FALSE(box(0).is_sent());
    end(1).mailbox.reset();
    end(1).transport.reset();
    for (int i = 0; i < 600; ++i) box(0).advance();
    EXPECT_THAT(end(0).lost, ::testing::ElementsAre(1));
    EXPECT_TRUE(box(0).is_sent());
  }
}

TEST_F(MailboxTest, WhatHasLeftIsCountedUntilItIsAcknowledgedOrThePeerIsGone) {
  using transport::StreamFault;
  const StreamFault mute{.kind = StreamFault::Kind::kUnacknowledged,
                         .peer = 1,
                         .channel = transport::ChannelKind::kMail,
                         .after = 8_B};
  connect({.streams = {mute}}, 3);
  box(0).say_farewell(Departure::kInOrder);
  settle();
  EXPECT_TRUE(box(0).is_sent());
  EXPECT_EQ(box(0).unacknowledged(), Bytes(MailFrame::kSize) - mute.after);
  EXPECT_EQ(box(2).unacknowledged(), 0_B);
  end(1).mailbox.reset();
  end(1).transport.reset();
  for (int i = 0; i < 10; ++i) box(0).advance();
  EXPECT_EQ(box(0).unacknowledged(), 0_B);
}

/// Rank 0's end of the stream is held by the test, which writes frames that no mailbox would.
class BrokenPeerTest : public MailboxTest {
 protected:
  void write(const MailFrame& frame, std::span<const std::byte> payload = {}) {
    const auto header = frame.encode();
    const std::array<transport::ConstPiece, 2> pieces = {header, payload};
    const auto size = static_cast<std::int64_t>(header.size() + payload.size());
    ASSERT_EQ(end(0).transport->mail().try_send(1, pieces).bytes, Bytes(size));
    for (int i = 0; i < 10; ++i) box(1).advance();
  }
};

TEST_F(BrokenPeerTest, APieceThatNobodyAskedForEndsTheGroup) {
  const std::array<std::byte, 8> payload{};
  write({.kind = MailFrame::Kind::kData, .id = 7, .payload = 8_B}, payload);
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("nobody asked for"));
}

TEST_F(BrokenPeerTest, MoreOfAMessageThanWasOfferedEndsTheGroupAndIsWrittenNowhere) {
  std::vector<float> in(6'000, 5.F);
  const TicketPtr received = receive(1, in, 0);
  write({.kind = MailFrame::Kind::kOffer,
         .dtype = static_cast<std::uint8_t>(DType::kF32),
         .count = Elements(6'000),
         .id = 1});
  const std::vector<std::byte> payload(24'004);
  write({.kind = MailFrame::Kind::kData, .id = 1, .payload = Bytes(24'004)}, payload);
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("more of a message than it offered"));
  EXPECT_FALSE(received->ended());
  EXPECT_THAT(in, ::testing::Each(5.F));
}

TEST_F(BrokenPeerTest, TwoMessagesByOneNumberEndTheGroup) {
  std::vector<float> one(6'000), two(6'000);
  const TicketPtr first = receive(1, one, 0), second = receive(1, two, 0);
  const MailFrame offer{.kind = MailFrame::Kind::kOffer,
                        .dtype = static_cast<std::uint8_t>(DType::kF32),
                        .count = Elements(6'000),
                        .id = 7};
  write(offer);
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());
  write(offer);
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("two messages by one number"));
}

/// Of f32.
MailFrame frame_of(MailFrame::Kind kind, std::int64_t count, std::uint64_t id) {
  return {.kind = kind,
          .dtype = static_cast<std::uint8_t>(DType::kF32),
          .count = Elements(count),
          .id = id,
          .payload = kind == MailFrame::Kind::kEager ? Bytes(count * 4) : 0_B};
}

TEST_F(BrokenPeerTest, MoreSmallMessagesThanTheBoundAllowsEndTheGroup) {
  connect_plain(2'000_B);
  const std::vector<std::byte> payload(800);
  write(frame_of(MailFrame::Kind::kEager, 200, 0), payload);
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());
  write(frame_of(MailFrame::Kind::kEager, 200, 0), payload);
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("the link to rank 0 ("));
  EXPECT_THAT(end(1).failures[0], HasSubstr("more small messages than this rank has room for"));
}

TEST_F(BrokenPeerTest, ASmallMessageThatIsNotTheOneThatWasOfferedEndsTheGroup) {
  std::vector<float> in(100, 5.F);
  const std::vector<std::byte> payload(400);
  for (const bool is_accepted : {false, true}) {
    for (const MailFrame& wrong :
         {frame_of(MailFrame::Kind::kEager, 100, 8), frame_of(MailFrame::Kind::kEager, 99, 7)}) {
      connect_plain();
      write(frame_of(MailFrame::Kind::kOffer, 100, 7));
      if (is_accepted) receive(1, in, 0);
      write(wrong, std::span(payload).first(static_cast<std::size_t>(wrong.payload.value)));
      ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
      EXPECT_THAT(end(1).failures[0], HasSubstr("another message than it offered"));
      EXPECT_THAT(in, ::testing::Each(5.F));
    }
  }
}

TEST_F(BrokenPeerTest, TwoSmallMessagesByOneNumberEndTheGroup) {
  write(frame_of(MailFrame::Kind::kOffer, 100, 7));
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());
  write(frame_of(MailFrame::Kind::kOffer, 100, 7));
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("two messages by one number"));
}

TEST_F(BrokenPeerTest, TheReceiptOfMoreMessagesThanWereSentEndsTheGroup) {
  ASSERT_TRUE(send_at_once(1, {1, 2}));
  write(frame_of(MailFrame::Kind::kCredit, 1, 8));
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());
  write(frame_of(MailFrame::Kind::kCredit, 1, 0));
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("received more messages than it was sent"));
}

TEST_F(BrokenPeerTest, APeerWhoseStreamIsDamagedIsStillToldWhy) {
  write({.kind = MailFrame::Kind::kData, .id = 7, .payload = 0_B});
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  const Error cause(ErrorKind::kPeerLost, end(1).failures[0]);
  box(1).fail(cause);
  box(1).tell_abort(cause);
  for (int i = 0; i < 10; ++i) box(0).advance();
  ASSERT_THAT(end(0).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(0).failures[0], HasSubstr("nobody asked for"));
}

TEST_F(BrokenPeerTest, AnOfferOfMemoryThatIsNotSharedEndsTheGroup) {
  std::vector<float> in(6'000);
  const TicketPtr received = receive(1, in, 0);
  write({.kind = MailFrame::Kind::kPlaced,
         .dtype = static_cast<std::uint8_t>(DType::kF32),
         .count = Elements(6'000),
         .id = 1,
         .place = UINT64_MAX - 100});
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("memory that is not shared"));
  EXPECT_FALSE(received->ended());
}

TEST_F(MailboxTest, WhereARankStandsComesToWhomItTells) {
  Standing standing;
  standing.fingerprint.sequence = 7;
  standing.fingerprint.operation = Operation::kGather;
  standing.before = 77;
  box(0).tell_standing(1, standing);
  settle();
  EXPECT_EQ(end(1).standings.at(0), standing);
}

}  // namespace
}  // namespace peal::engine
