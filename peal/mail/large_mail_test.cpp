// Both ends of large messages that pass the channel, without their mailboxes.
#include "peal/mail/large_mail.h"

#include <array>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/transport/memory/memory.h"
#include "peal/transport/testing/testing.h"

namespace peal::mail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TicketPtr ticket() { return std::make_shared<Ticket>("a message", Timeout(60'000)); }

/// Records what arrives.
class Notes final : public FrameReader {
 public:
  std::vector<Frame> frames;
  std::vector<std::byte> bytes;

 private:
  std::span<std::byte> begin_frame(Rank, const Frame& frame) override {
    bytes.resize(bytes.size() + static_cast<std::size_t>(frame.payload.value));
    return std::span(bytes).last(static_cast<std::size_t>(frame.payload.value));
  }
  void end_frame(Rank, const Frame& frame) override { frames.push_back(frame); }
};

/// Rank 0 sends to rank 1, which records what arrives.
class LargeSendsTest : public ::testing::Test {
 protected:
  /// Pumps until the stream has nothing to send.
  void transfer() {
    while (stream_.has_unsent()) {
      stream_.pump_out();
      while (theirs_.pump_in(notes_) == FrameStream::State::kMoved) {
      }
    }
  }

  std::vector<std::unique_ptr<transport::Transport>> ranks_ = transport::make_memory_transports(2);
  FrameStream stream_{1, ranks_[0]->mail()};
  FrameStream theirs_{0, ranks_[1]->mail()};
  Notes notes_;
  LargeSends sends_;
};

TEST_F(LargeSendsTest, AMessageLeavesInPiecesOnceItIsAccepted) {
  const std::vector<std::byte> data = transport::testing::stream_bytes(0, 1, 0, 600 << 10);
  const TicketPtr sent = ticket();
  sends_.offer(4, sent, data);
  EXPECT_FALSE(sends_.post_next_piece(stream_));
  sends_.accepted(4);
  for (const Bytes size : {kDataPiece, kDataPiece, 88_KiB}) {
    EXPECT_FALSE(sent->ended());
    EXPECT_FALSE(sends_.empty());
    EXPECT_TRUE(sends_.post_next_piece(stream_));
    EXPECT_FALSE(sends_.post_next_piece(stream_));  // the stream has something to send
    transfer();
    EXPECT_EQ(notes_.frames.back(), (Frame{.kind = Frame::Kind::kData, .id = 4, .payload = size}));
  }
  EXPECT_TRUE(sends_.empty());
  EXPECT_EQ(sent->source(), 1);
  EXPECT_EQ(notes_.bytes, data);
}

TEST_F(LargeSendsTest, MessagesLeaveInTheOrderInWhichTheyWereAccepted) {
  const std::vector<std::byte> data(100);
  for (const std::uint64_t id : {1u, 2u, 3u}) sends_.offer(id, ticket(), data);
  for (const std::uint64_t id : {2u, 3u, 1u}) sends_.accepted(id);
  std::vector<std::uint64_t> ids;
  while (sends_.post_next_piece(stream_)) {
    transfer();
    ids.push_back(notes_.frames.back().id);
  }
  EXPECT_THAT(ids, ElementsAre(2, 3, 1));
}

TEST_F(LargeSendsTest, AMessageThatThePeerHasCopiedEnds) {
  const std::vector<std::byte> data(100);
  const TicketPtr sent = ticket();
  sends_.offer(1, sent, data);
  sends_.taken(1, 1);
  EXPECT_EQ(sent->source(), 1);
  EXPECT_TRUE(sends_.empty());
}

TEST_F(LargeSendsTest, IgnoresAnswersToMessagesThatWereNotOffered) {
  const std::vector<std::byte> data(100);
  const TicketPtr sent = ticket();
  sends_.offer(1, sent, data);
  sends_.accepted(2);
  sends_.taken(2, 1);
  EXPECT_FALSE(sends_.post_next_piece(stream_));
  EXPECT_FALSE(sent->ended());
}

TEST_F(LargeSendsTest, ClearedMessagesAreNotSent) {
  const std::vector<std::byte> data(100);
  sends_.offer(1, ticket(), data);
  sends_.offer(2, ticket(), data);
  sends_.accepted(1);
  sends_.clear();
  EXPECT_TRUE(sends_.empty());
  EXPECT_FALSE(sends_.post_next_piece(stream_));
}

class LargeReceivesTest : public ::testing::Test {
 protected:
  LargeReceivesTest() {
    receives_.expect(1, {received_, {0, {}, DType::kU8, Elements(10)}, data_.data(), 0_B});
  }
  static Frame piece(std::uint64_t id, Bytes size) {
    return {.kind = Frame::Kind::kData, .id = id, .payload = size};
  }

  std::array<std::byte, 10> data_{};
  TicketPtr received_ = ticket();
  LargeReceives receives_;
};

TEST_F(LargeReceivesTest, PiecesAreStoredInOrderAndTheLastEndsTheReceive) {
  for (const Bytes size : {6_B, 4_B}) {
    EXPECT_FALSE(received_->ended());
    EXPECT_FALSE(receives_.objection(piece(1, size)));
    const auto place = receives_.place_of(piece(1, size));
    EXPECT_EQ(place.data(), data_.data() + (size == 6_B ? 0 : 6));
    EXPECT_EQ(place.size(), static_cast<std::size_t>(size.value));
    receives_.end_piece(piece(1, size), 3);
  }
  EXPECT_EQ(received_->source(), 3);
  EXPECT_TRUE(receives_.empty());
}

TEST_F(LargeReceivesTest, RejectsAPieceOfAnUnknownMessage) {
  EXPECT_THAT(receives_.objection(piece(2, 4_B)).value(), HasSubstr("was not accepted"));
  receives_.end_piece(piece(2, 10_B), 0);
  EXPECT_FALSE(received_->ended());
  EXPECT_FALSE(receives_.empty());
}

TEST_F(LargeReceivesTest, RejectsMoreBytesThanWereOffered) {
  EXPECT_THAT(receives_.objection(piece(1, 11_B)).value(), HasSubstr("more of a message"));
  receives_.end_piece(piece(1, 6_B), 0);
  EXPECT_FALSE(receives_.objection(piece(1, 4_B)));
  EXPECT_THAT(receives_.objection(piece(1, 5_B)).value(), HasSubstr("more of a message"));
}

TEST_F(LargeReceivesTest, ClearedMessagesAreNotExpected) {
  receives_.clear();
  EXPECT_TRUE(receives_.empty());
  EXPECT_TRUE(receives_.objection(piece(1, 4_B)));
}

}  // namespace
}  // namespace peal::mail
