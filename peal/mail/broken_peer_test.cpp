// Mailboxes whose peer breaks, leaves or fails, driven by hand over the memory transport.
#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/mail/testing/mailboxes.h"

namespace peal::mail {
namespace {

using ::testing::HasSubstr;
using testing::MailboxTest;

TEST_F(MailboxTest, AfterAFailureNoBorrowedMemoryIsTouchedAndThePeerReceivesTheCause) {
  auto out = std::make_unique<std::vector<float>>(numbers(500'000));
  auto in = std::make_unique<std::vector<float>>(500'000);
  const TicketPtr sent = send(0, *out);
  const TicketPtr received = receive(1, *in, 0);
  box(0).advance();
  box(1).advance();
  box(0).advance();  // a part of it is in flight
  const Error cause(ErrorKind::kTimeout, "a rank is late");
  box(0).fail(cause);
  out.reset();  // the sanitizer would see a touch
  box(0).tell_abort(cause);
  settle();
  EXPECT_TRUE(sent->exception());
  EXPECT_FALSE(received->ended());  // the driver, which was notified, ends it
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_EQ(end(1).failures[0], "timeout: a rank is late");
  box(1).fail(cause);
  in.reset();
  settle();
  EXPECT_TRUE(received->exception());
}

TEST_F(MailboxTest, ALeaveNoticeIsAFailureOnlyIfMessagesAreExpected) {
  box(0).send_leave(Departure::kNormal);
  settle();
  end(0).mailbox.reset();
  end(0).transport.reset();
  for (int i = 0; i < 600; ++i) box(1).advance();
  EXPECT_EQ(box(1).departure(0), Departure::kNormal);
  EXPECT_THAT(end(1).lost, ::testing::IsEmpty());
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());

  std::vector<float> in(3);
  receive(1, in, 0);
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("has left the group"));
}

TEST_F(MailboxTest, AReceiveFromAnyRankNamesTheRankThatLeftByAnException) {
  for (const Rank source : {0, kAnySource}) {
    connect({});
    std::vector<float> in(3);
    receive(1, in, source);
    box(0).send_leave(Departure::kByException);
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

TEST_F(MailboxTest, NamesTheRankThatLeftByAnExceptionIfOthersLeaveLater) {
  connect({}, 3);
  std::vector<float> in(3);
  receive(0, in, kAnySource);
  box(1).send_leave(Departure::kByException);
  settle();
  EXPECT_THAT(end(0).failures, ::testing::IsEmpty());  // rank 2 may still send
  box(2).send_leave(Departure::kNormal);
  settle();
  ASSERT_THAT(end(0).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(0).failures[0], HasSubstr("peer_lost: rank 1 ("));
  EXPECT_THAT(end(0).failures[0], HasSubstr("has left the group because of an exception"));
}

TEST_F(MailboxTest, NamesTheRankThatLeavesWithoutSendingAnExpectedMessage) {
  connect({}, 3);
  std::vector<float> in(3);
  receive(0, in, 2);
  box(1).send_leave(Departure::kByException);
  settle();
  box(2).send_leave(Departure::kNormal);
  settle();
  ASSERT_THAT(end(0).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(0).failures[0], HasSubstr("peer_lost: rank 2 ("));
}

TEST_F(MailboxTest, AMessageThatCameBeforeTheLeaveNoticeCanStillBeReceived) {
  const std::vector<float> out = {4};
  std::vector<float> in(1);
  send(0, out);
  box(0).send_leave(Departure::kNormal);
  settle();
  EXPECT_TRUE(receive(1, in, 0)->ended());
  EXPECT_EQ(in, out);
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());
}

TEST_F(MailboxTest, AStreamThatEndsWithoutALeaveNoticeMeansALostPeer) {
  end(0).mailbox.reset();
  end(0).transport.reset();
  for (int i = 0; i < 600; ++i) box(1).advance();
  EXPECT_THAT(end(1).lost, ::testing::ElementsAre(0));
}

TEST_F(MailboxTest, ADamagedFrameFailsTheGroup) {
  connect({.streams = {{.kind = transport::StreamFault::Kind::kCorrupt,
                        .peer = 1,
                        .channel = transport::ChannelKind::kMail}}});
  const std::vector<float> out = {1};
  send(0, out);
  settle();
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("damaged"));
}

TEST_F(MailboxTest, ReadsTheCauseBeforeGivingUpAStreamThatAcceptsNothing) {
  const Error cause(ErrorKind::kTimeout, "a rank is late");
  box(0).fail(cause);
  box(0).tell_abort(cause);
  box(0).advance();
  end(0).mailbox.reset();
  end(0).transport.reset();
  const std::vector<float> out = {1};
  send(1, out);
  for (int i = 0; i < 600; ++i) box(1).advance();
  ASSERT_THAT(end(1).failures, ::testing::Not(::testing::IsEmpty()));
  EXPECT_EQ(end(1).failures[0], "timeout: a rank is late");
}

TEST_F(MailboxTest, AMessageThatTheLeavingRankDidNotTakeIsAFailure) {
  connect({.most_per_call = 100_B, .idle_calls = 1});
  const std::vector<float> out = numbers(2'000);
  const TicketPtr sent = send(1, out);  // small enough to need no offer, and still in flight
  box(1).advance();
  box(0).send_leave(Departure::kNormal);
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
  box(0).send_leave(Departure::kNormal);
  settle();
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  receive(1, in, kAnySource, Tag{1});
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(2));
  EXPECT_THAT(end(1).failures.back(), HasSubstr("all other ranks have left"));
}

TEST_F(MailboxTest, MessagesOfferedBeforeTheLeaveNoticeAreDelivered) {
  const std::vector<float> out = numbers(500'000);
  std::vector<float> in(500'000);
  const TicketPtr sent = send(0, out);
  box(0).send_leave(Departure::kNormal);
  settle();
  const TicketPtr received = receive(1, in, 0);
  settle();
  EXPECT_TRUE(sent->ended());
  EXPECT_TRUE(received->ended());
  EXPECT_FALSE(received->exception());
  EXPECT_EQ(in, out);
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());
}

TEST_F(MailboxTest, AnOfferOfALostSenderCannotBeAccepted) {
  const std::vector<float> out = numbers(500'000);
  std::vector<float> in(500'000);
  send(0, out);
  box(0).send_leave(Departure::kNormal);
  settle();
  end(0).mailbox.reset();
  end(0).transport.reset();
  for (int i = 0; i < 600; ++i) box(1).advance();
  receive(1, in, 0);
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("can never be delivered"));
}

TEST_F(MailboxTest, AMessageThatFailsTheGroupEndsWithTheErrorOfTheGroup) {
  const std::vector<float> out = {1};
  std::vector<float> in(2);
  send(0, out);
  const TicketPtr received = receive(1, in, 0);
  settle();
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));  // a mismatch
  EXPECT_FALSE(received->ended());
  box(1).fail(Error(ErrorKind::kTimeout, "a rank failed first"));
  EXPECT_EQ(error_of([&] { std::rethrow_exception(received->exception()); }).kind(),
            ErrorKind::kTimeout);
}

TEST_F(MailboxTest, AfterAFailureLaterMessagesFailAtOnce) {
  box(0).fail(Error(ErrorKind::kTimeout, "a rank is late"));
  std::vector<float> data(3);
  EXPECT_TRUE(send(0, data)->exception());
  EXPECT_TRUE(receive(0, data, 1)->exception());
}

TEST_F(MailboxTest, NothingRemainsToSendToAPeerThatHasLeft) {
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

TEST_F(MailboxTest, BytesAreUnacknowledgedUntilThePeerConfirmsOrLeaves) {
  using transport::StreamFault;
  const StreamFault mute{.kind = StreamFault::Kind::kUnacknowledged,
                         .peer = 1,
                         .channel = transport::ChannelKind::kMail,
                         .after = 8_B};
  connect({.streams = {mute}}, 3);
  box(0).send_leave(Departure::kNormal);
  settle();
  EXPECT_TRUE(box(0).is_sent());
  constexpr Bytes kPayload = 1_B;  // of a leave
  EXPECT_EQ(box(0).unacknowledged(), Bytes(Frame::kSize) + kPayload - mute.after);
  EXPECT_EQ(box(2).unacknowledged(), 0_B);
  end(1).mailbox.reset();
  end(1).transport.reset();
  for (int i = 0; i < 10; ++i) box(0).advance();
  EXPECT_EQ(box(0).unacknowledged(), 0_B);
}

/// The test holds rank 0's end of the stream, and writes frames that a mailbox would never write.
class BrokenPeerTest : public MailboxTest {
 protected:
  void write(const Frame& frame, std::span<const std::byte> payload = {}) {
    const auto header = frame.encode();
    const std::array<transport::ConstPiece, 2> pieces = {header, payload};
    const auto size = static_cast<std::int64_t>(header.size() + payload.size());
    ASSERT_EQ(end(0).transport->mail().try_send(1, pieces).bytes, Bytes(size));
    for (int i = 0; i < 10; ++i) box(1).advance();
  }
};

TEST_F(BrokenPeerTest, APieceThatWasNotAcceptedFailsTheGroup) {
  const std::array<std::byte, 8> payload{};
  write({.kind = Frame::Kind::kData, .id = 7, .payload = 8_B}, payload);
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("was not accepted"));
}

TEST_F(BrokenPeerTest, MoreBytesThanWereOfferedFailTheGroupAndAreNotWritten) {
  std::vector<float> in(6'000, 5.F);
  const TicketPtr received = receive(1, in, 0);
  write({.kind = Frame::Kind::kOffer, .dtype = DType::kF32, .count = Elements(6'000), .id = 1});
  const std::vector<std::byte> payload(24'004);
  write({.kind = Frame::Kind::kData, .id = 1, .payload = Bytes(24'004)}, payload);
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("more of a message than it offered"));
  EXPECT_FALSE(received->ended());
  EXPECT_THAT(in, ::testing::Each(5.F));
}

TEST_F(BrokenPeerTest, TwoMessagesWithOneNumberFailTheGroup) {
  std::vector<float> one(6'000), two(6'000);
  const TicketPtr first = receive(1, one, 0), second = receive(1, two, 0);
  const Frame offer{
      .kind = Frame::Kind::kOffer, .dtype = DType::kF32, .count = Elements(6'000), .id = 7};
  write(offer);
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());
  write(offer);
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("two messages with one number"));
}

/// Of f32.
Frame frame_of(Frame::Kind kind, std::int64_t count, std::uint64_t id) {
  return {.kind = kind,
          .dtype = DType::kF32,
          .count = Elements(count),
          .id = id,
          .payload = kind == Frame::Kind::kEager ? Bytes(count * 4) : 0_B};
}

TEST_F(BrokenPeerTest, MoreSmallMessagesThanTheBoundAllowsFailTheGroup) {
  connect_plain(2'000_B);
  const std::vector<std::byte> payload(800);
  write(frame_of(Frame::Kind::kEager, 200, 0), payload);
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());
  write(frame_of(Frame::Kind::kEager, 200, 0), payload);
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("rank 0 is damaged: "));
  EXPECT_THAT(end(1).failures[0], HasSubstr("more small messages than this rank has room for"));
}

TEST_F(BrokenPeerTest, ASmallMessageThatDiffersFromItsOfferFailsTheGroup) {
  std::vector<float> in(100, 5.F);
  const std::vector<std::byte> payload(400);
  for (const bool is_accepted : {false, true}) {
    for (const Frame& wrong :
         {frame_of(Frame::Kind::kEager, 100, 8), frame_of(Frame::Kind::kEager, 99, 7)}) {
      connect_plain();
      write(frame_of(Frame::Kind::kOffer, 100, 7));
      if (is_accepted) receive(1, in, 0);
      write(wrong, std::span(payload).first(static_cast<std::size_t>(wrong.payload.value)));
      ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
      EXPECT_THAT(end(1).failures[0], HasSubstr("a message that differs from its offer"));
      EXPECT_THAT(in, ::testing::Each(5.F));
    }
  }
}

TEST_F(BrokenPeerTest, TwoSmallMessagesWithOneNumberFailTheGroup) {
  write(frame_of(Frame::Kind::kOffer, 100, 7));
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());
  write(frame_of(Frame::Kind::kOffer, 100, 7));
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("two messages with one number"));
}

TEST_F(BrokenPeerTest, CreditForMoreMessagesThanWereSentFailsTheGroup) {
  ASSERT_TRUE(send_at_once(1, {1, 2}));
  write(frame_of(Frame::Kind::kCredit, 1, 8));
  EXPECT_THAT(end(1).failures, ::testing::IsEmpty());
  write(frame_of(Frame::Kind::kCredit, 1, 0));
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("confirms more messages than this rank has sent"));
}

TEST_F(BrokenPeerTest, APeerWithADamagedStreamReceivesTheCause) {
  write({.kind = Frame::Kind::kData, .id = 7, .payload = 0_B});
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  const Error cause(ErrorKind::kPeerLost, end(1).failures[0]);
  box(1).fail(cause);
  box(1).tell_abort(cause);
  for (int i = 0; i < 10; ++i) box(0).advance();
  ASSERT_THAT(end(0).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(0).failures[0], HasSubstr("was not accepted"));
}

TEST_F(BrokenPeerTest, AnOfferOfMemoryThatIsNotSharedFailsTheGroup) {
  std::vector<float> in(6'000);
  const TicketPtr received = receive(1, in, 0);
  write({.kind = Frame::Kind::kPlaced,
         .dtype = DType::kF32,
         .count = Elements(6'000),
         .id = 1,
         .place = UINT64_MAX - 100});
  ASSERT_THAT(end(1).failures, ::testing::SizeIs(1));
  EXPECT_THAT(end(1).failures[0], HasSubstr("memory that is not shared"));
  EXPECT_FALSE(received->ended());
}

}  // namespace
}  // namespace peal::mail
