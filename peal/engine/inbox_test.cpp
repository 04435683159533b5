// Receiving from a peer, also byte by byte. The test plays the peer.
#include "peal/engine/inbox.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/testing/testing.h"

namespace peal::engine {
namespace {

using ::testing::HasSubstr;
using transport::testing::stream_bytes;

constexpr Rank kSelf = 0;
constexpr Rank kPeer = 1;

class InboxTest : public ::testing::Test {
 protected:
  InboxTest() { inbox_.begin(); }

  void send(std::span<const std::byte> bytes) {
    const std::array<transport::ConstPiece, 1> pieces = {bytes};
    const auto sent = ranks_[kPeer]->data().try_send(kSelf, pieces);
    ASSERT_EQ(sent.bytes, Bytes(std::ssize(bytes)));
  }
  bool receive_header(Bytes due) { return inbox_.receive_header(kPeer, expected_, due); }
  void begin_move(Bytes due) {
    send(expected_.encode());
    ASSERT_TRUE(receive_header(due));
  }

  std::vector<std::unique_ptr<transport::Transport>> ranks_ = transport::make_memory_transports(2);
  Inbox inbox_{kSelf, 2, ranks_[kSelf]->data()};
  const Header expected_{.fingerprint = {.sequence = 5,
                                         .operation = Operation::kBroadcast,
                                         .dtype = DType::kU8,
                                         .count = Elements(10)},
                         .link_bytes = 10_B};
  const std::vector<std::byte> data_ = stream_bytes(kPeer, kSelf, 0, 10);
};

TEST_F(InboxTest, AHeaderMayComeInPieces) {
  const auto header = expected_.encode();
  EXPECT_FALSE(receive_header(10_B));
  EXPECT_FALSE(inbox_.has_begun());
  send(std::span(header).first(47));
  EXPECT_FALSE(receive_header(10_B));
  EXPECT_TRUE(inbox_.has_begun());
  EXPECT_FALSE(inbox_.has_header(kPeer, 5));
  send(std::span(header).last(1));
  EXPECT_TRUE(receive_header(10_B));
  EXPECT_TRUE(inbox_.has_header(kPeer, 5));
  EXPECT_FALSE(inbox_.has_header(kPeer, 6));
  EXPECT_FALSE(inbox_.has_begun());  // nothing of the move
}

TEST_F(InboxTest, BytesReadWithTheHeaderComeBeforeLaterBytes) {
  send(expected_.encode());
  send(std::span(data_).first(2));
  ASSERT_TRUE(receive_header(10_B));
  send(std::span(data_).subspan(2));
  std::vector<std::byte> in(10);
  EXPECT_TRUE(inbox_.receive(kPeer, std::span(in).first(1)));  // less than there is
  for (std::size_t have = 1; have < 10; have = static_cast<std::size_t>(inbox_.received().value)) {
    ASSERT_TRUE(inbox_.receive(kPeer, std::span(in).subspan(have)));
  }
  EXPECT_EQ(in, data_);
  EXPECT_FALSE(inbox_.receive(kPeer, in));
}

TEST_F(InboxTest, ReadsWithTheHeaderOnlyBytesOfTheMove) {
  send(expected_.encode());
  send(data_);
  ASSERT_TRUE(receive_header(4_B));
  EXPECT_EQ(std::ssize(inbox_.held()), 4);
}

TEST_F(InboxTest, HeldBytesAreUsedFromTheBeginning) {
  begin_move(10_B);
  send(data_);
  EXPECT_TRUE(inbox_.hold_more(kPeer, 2_B));
  EXPECT_TRUE(inbox_.hold_more(kPeer, 9_B));
  EXPECT_EQ(std::ssize(inbox_.held()), 9);
  inbox_.use(2_B);
  EXPECT_EQ(inbox_.received(), 2_B);
  EXPECT_EQ(std::ssize(inbox_.held()), 7);
  EXPECT_TRUE(std::ranges::equal(inbox_.held(), std::span(data_).subspan(2, 7)));
  EXPECT_TRUE(inbox_.hold_more(kPeer, 8_B));
  EXPECT_FALSE(inbox_.hold_more(kPeer, 10_B));
}

TEST_F(InboxTest, TakeReceivedSizeCountsEachByteOnce) {
  EXPECT_EQ(inbox_.take_received_size(), 0_B);
  begin_move(10_B);
  send(data_);
  inbox_.hold_more(kPeer, 10_B);
  EXPECT_EQ(inbox_.take_received_size(), Bytes(Header::kSize) + 10_B);
  EXPECT_EQ(inbox_.take_received_size(), 0_B);
}

TEST_F(InboxTest, BeginResetsTheCounts) {
  begin_move(10_B);
  send(data_);
  inbox_.hold_more(kPeer, 10_B);
  inbox_.use(1_B);
  inbox_.begin();
  EXPECT_FALSE(inbox_.has_begun());
  EXPECT_TRUE(inbox_.held().empty());
  EXPECT_EQ(inbox_.take_received_size(), 0_B);
}

TEST_F(InboxTest, AHeaderOfAnotherOperationIsAMismatch) {
  Header other_count = expected_;
  other_count.fingerprint.count = Elements(11);
  Header other_length = expected_;
  other_length.link_bytes = 11_B;
  std::array<std::byte, Header::kSize> noise{};
  noise.fill(std::byte{77});
  for (const auto& [bytes, text] : {std::pair(other_count.encode(), "11 u8"),
                                    std::pair(other_length.encode(), "sends 11 bytes to rank 0"),
                                    std::pair(noise, "not the header of an operation")}) {
    inbox_.begin();
    send(bytes);
    const Error error = error_of([&] { receive_header(10_B); });
    EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
    EXPECT_THAT(error.what(), HasSubstr(text));
    EXPECT_FALSE(inbox_.has_header(kPeer, 5));
  }
}

TEST_F(InboxTest, ErrorNamesThePeerWhoseStreamIsClosed) {
  begin_move(10_B);
  ranks_[kPeer].reset();
  std::array<std::byte, 10> in{};
  std::optional<Rank> named;
  for (int i = 0; i < 1'000 && !named; ++i) {
    try {
      inbox_.receive(kPeer, in);
    } catch (const PeerClosed& closed) {
      named = closed.peer;
    }
  }
  EXPECT_EQ(named, kPeer);
}

}  // namespace
}  // namespace peal::engine
