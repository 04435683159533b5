#include "peal/transport/testing/faulty.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "peal/transport/memory/memory.h"
#include "peal/transport/testing/forwarding.h"
#include "peal/transport/testing/testing.h"

namespace peal::transport {
namespace {

using testing::bytes_of;
using testing::kHang;
using testing::receive_all;
using testing::send_all;
using testing::stream_bytes;
using testing::test_deadline;
using testing::Transports;

/// Two ranks. Rank 0 has the faults.
Transports with(const Faults& faults) {
  Transports transports = make_memory_transports(2);
  transports[0] = make_faulty(std::move(transports[0]), faults);
  return transports;
}

Transfer send(Channel& channel, Rank peer, const std::vector<std::byte>& bytes) {
  const ConstPiece piece(bytes);
  return channel.try_send(peer, {&piece, 1});
}

TEST(FaultyTest, WithoutFaultsItBehavesLikeTheInnerTransport) {
  const Transports ranks = with({});
  EXPECT_EQ(send(ranks[0]->data(), 1, bytes_of("hello")).bytes, 5_B);
  EXPECT_EQ(receive_all(ranks[1]->data(), 0, 5, test_deadline()), bytes_of("hello"));
  EXPECT_NE(ranks[0]->window(), nullptr);
  EXPECT_EQ(ranks[0]->ranks_on_host(), 2);
  EXPECT_GE(ranks[0]->cpus_on_host(), 1);
  EXPECT_EQ(ranks[0]->describe(1), "faulty " + ranks[1]->describe(0));
}

TEST(FaultyTest, TransfersAreShortAndTheSameForTheSameSeed) {
  const auto lengths = [](unsigned seed) {
    const Transports ranks = with({.seed = seed, .most_per_call = 100_B});
    const auto bytes = stream_bytes(0, 1, 0, 1000);
    std::vector<Bytes> moved;
    for (int i = 0; i < 20; ++i) moved.push_back(send(ranks[0]->data(), 1, bytes).bytes);
    return moved;
  };
  for (const Bytes length : lengths(1)) {
    EXPECT_GE(length, 1_B);
    EXPECT_LE(length, 100_B);
  }
  EXPECT_EQ(lengths(1), lengths(1));
  EXPECT_NE(lengths(1), lengths(2));
}

TEST(FaultyTest, AfterATransferCallsAreIdleForAWhile) {
  const Transports ranks = with({.idle_calls = 2});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(send(ranks[0]->data(), 1, bytes_of("abc")).bytes, 3_B);
    EXPECT_EQ(send(ranks[0]->data(), 1, bytes_of("def")).bytes, 0_B);
    EXPECT_EQ(send(ranks[0]->data(), 1, bytes_of("def")).bytes, 0_B);
  }
  EXPECT_EQ(receive_all(ranks[1]->data(), 0, 9, test_deadline()), bytes_of("abcabcabc"));
}

TEST(FaultyTest, AnIdleStreamDoesNotLetAWaitSleep) {
  const Transports ranks = with({.idle_calls = 5});
  send_all(ranks[1]->data(), 0, bytes_of("hello"), test_deadline());
  std::vector<std::byte> into(2);
  EXPECT_EQ(ranks[0]->data().try_receive(1, into).bytes, 2_B);
  // If only new bytes could end this wait, it would sleep until the deadline.
  EXPECT_EQ(receive_all(ranks[0]->data(), 1, 3, test_deadline()), bytes_of("llo"));
}

TEST(FaultyTest, ACutLosesThePeerAfterTheGivenBytes) {
  for (const auto direction :
       {StreamFault::Direction::kSending, StreamFault::Direction::kReceiving}) {
    const Transports ranks = with(
        {.streams = {
             {.kind = StreamFault::Kind::kCut, .peer = 1, .direction = direction, .after = 3_B}}});
    Channel& data = ranks[0]->data();
    send_all(ranks[1]->data(), 0, bytes_of("hello"), test_deadline());
    std::vector<std::byte> into(5);
    const Transfer moved = direction == StreamFault::Direction::kSending
                               ? send(data, 1, bytes_of("hello"))
                               : data.try_receive(1, into);
    EXPECT_EQ(moved.bytes, 3_B);
    EXPECT_TRUE(send(data, 1, bytes_of("lo")).closed);
    EXPECT_TRUE(data.try_receive(1, into).closed);
    const Interest interest{1, Readiness::kReadable};
    const TimePoint begin = Clock::now();
    data.wait({&interest, 1}, test_deadline());
    ASSERT_LT(Clock::now() - begin, kHang);
    // The mail is a separate stream.
    EXPECT_EQ(send(ranks[0]->mail(), 1, bytes_of("hello")).bytes, 5_B);
  }
}

TEST(FaultyTest, OnlyTheNamedByteIsCorrupt) {
  for (const auto direction :
       {StreamFault::Direction::kSending, StreamFault::Direction::kReceiving}) {
    const Transports ranks = with({.most_per_call = 3_B,
                                   .streams = {{.kind = StreamFault::Kind::kCorrupt,
                                                .peer = 1,
                                                .channel = ChannelKind::kMail,
                                                .direction = direction,
                                                .after = 7_B}}});
    const bool sends = direction == StreamFault::Direction::kSending;
    const Rank from = sends ? 0 : 1;
    auto expected = stream_bytes(from, 1 - from, 0, 20);
    send_all(ranks[static_cast<std::size_t>(from)]->mail(), 1 - from, expected, test_deadline());
    expected[7] ^= std::byte{0xff};
    EXPECT_EQ(receive_all(ranks[sends ? 1 : 0]->mail(), from, 20, test_deadline()), expected);
  }
}

/// Its waits return at once and are counted.
class CountingChannel final : public ForwardingChannel {
 public:
  using ForwardingChannel::ForwardingChannel;
  void wait(std::span<const Interest>, Deadline) override { ++waits; }

  int waits = 0;
};

class CountingTransport final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  CountingChannel& data() override { return data_; }

 private:
  CountingChannel data_{inner().data()};
};

TEST(FaultyTest, SomeWaitsReturnWithoutReason) {
  auto counting = std::make_unique<CountingTransport>(std::move(make_memory_transports(2)[0]));
  CountingChannel& inner = counting->data();
  const auto faulty = make_faulty(std::move(counting), {.wakeups = Faults::Wakeups::kSpurious});
  const Interest interest{1, Readiness::kReadable};
  for (int i = 0; i < 10; ++i) faulty->data().wait({&interest, 1}, test_deadline());
  EXPECT_GT(inner.waits, 0);
  EXPECT_LT(inner.waits, 10);
}

}  // namespace
}  // namespace peal::transport
