// What an execution sends and receives. One rank executes; the test plays its peer.
#include "peal/engine/execution.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/engine/plan_cache.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/shm/mail_thread.h"
#include "peal/transport/testing/forwarding.h"

namespace peal::engine {
namespace {

using schedule::Move;
using schedule::Part;
using schedule::Slice;
using schedule::Space;
using schedule::Step;
using transport::Readiness;

constexpr Rank kOwnRank = 0;
constexpr Rank kOtherRank = 1;
constexpr Elements kTransferCount(1 << 20);

Slice own(Space space, Elements offset = {}) {
  return {.space = space, .ranks = {.first = kOwnRank}, .offset = offset};
}
const Slice kWire = {.space = Space::kWire, .ranks = {.first = kOtherRank}};

Step send(Elements count) {
  return Move{.from = {own(Space::kInput)}, .to = {kWire}, .count = count};
}
Step receive(Elements count, Elements offset = {}) {
  return Move{.from = {kWire}, .to = {own(Space::kOutput, offset)}, .count = count};
}
Step receive_and_reduce(Elements count) {
  return Move{.from = {own(Space::kInput), kWire}, .to = {own(Space::kOutput)}, .count = count};
}

/// Counts the calls, and forwards them.
class CountingChannel final : public transport::ForwardingChannel {
 public:
  using ForwardingChannel::ForwardingChannel;

  transport::Transfer try_send(Rank peer, std::span<const transport::ConstPiece> pieces) override {
    ++sends;
    return ForwardingChannel::try_send(peer, pieces);
  }
  transport::Transfer try_receive(Rank peer, std::span<std::byte> into) override {
    const transport::Transfer transfer = ForwardingChannel::try_receive(peer, into);
    if (transfer.bytes > 0_B) ++receives;
    return transfer;
  }

  int sends = 0;
  int receives = 0;
};

class CountingTransport final : public transport::ForwardingTransport {
 public:
  explicit CountingTransport(std::unique_ptr<Transport> inner)
      : ForwardingTransport(std::move(inner)), data_(this->inner().data()) {}

  CountingChannel& data() override { return data_; }

 private:
  CountingChannel data_;
};

class ExecutionTest : public ::testing::Test {
 protected:
  ExecutionTest() {
    auto transports = transport::make_memory_transports(
        2, {.sharing = transport::MemoryOptions::Sharing::kMessagesOnly, .data_ring = 8_MiB});
    transport_ = std::make_unique<CountingTransport>(std::move(transports[0]));
    peer_ = std::move(transports[1]);
    execution_ = std::make_unique<Execution>(kOwnRank, 2, *transport_, [](Rank) {});
    std::iota(input_.begin(), input_.end(), 0.0F);
  }

  void begin(std::vector<Step> steps, double weight = 1.0) {
    fingerprint_ = {.sequence = fingerprint_.sequence + 1,
                    .operation = Operation::kAllReduce,
                    .dtype = DType::kF32,
                    .count = kTransferCount};
    planned_.emplace(Part{.steps = std::move(steps)}, 2, kernels::Stores::kCached, weight);
    regions_in_.clear();
    regions_in_.add(input_.data(), kTransferCount);
    regions_out_.clear();
    regions_out_.add(output_.data(), kTransferCount);
    addresses_.set_own(DType::kF32, regions_in_, regions_out_);
    execution_->enter(fingerprint_, 0, Compare::kChecks);
    execution_->begin(plan_, *planned_, addresses_);
  }

  /// Advances as far as possible without the peer.
  Progress advance() {
    Progress progress = execution_->advance();
    while (progress == Progress::kMoved) progress = execution_->advance();
    return progress;
  }

  /// How much has been sent to the peer since the last call.
  Bytes take_at_peer() {
    Bytes taken;
    std::vector<std::byte> room(1 << 20);
    while (true) {
      const auto transfer = peer_->data().try_receive(kOwnRank, room);
      if (transfer.bytes == 0_B) return taken;
      taken += transfer.bytes;
    }
  }

  /// The peer sends `count` elements on a link that carries `total` elements in all.
  void send_from_peer(std::span<const float> elements, Elements total) {
    const auto header = Header{fingerprint_, bytes_of(total, DType::kF32)}.encode();
    const std::array<transport::ConstPiece, 2> pieces = {header, std::as_bytes(elements)};
    const auto sent = peer_->data().try_send(kOwnRank, pieces);
    ASSERT_EQ(sent.bytes, Bytes(Header::kSize) + Bytes(std::ssize(elements) * 4));
  }

  std::vector<float> input_ = std::vector<float>(static_cast<std::size_t>(kTransferCount.value));
  std::vector<float> output_ = std::vector<float>(static_cast<std::size_t>(kTransferCount.value));
  std::unique_ptr<CountingTransport> transport_;
  std::unique_ptr<transport::Transport> peer_;
  Fingerprint fingerprint_;
  const kernels::Reducer sum_{DType::kF32, ReduceOp::Kind::kSum};
  CachedPlan plan_{.problem = {}, .fingerprint = {}, .reducer = sum_, .finisher = sum_};
  Regions regions_in_, regions_out_;
  BufferAddresses addresses_{kOwnRank, 2};
  std::optional<PlannedPart> planned_;
  std::unique_ptr<Execution> execution_;
};

constexpr Bytes kHeader(Header::kSize);

TEST_F(ExecutionTest, WhileReceivingItSendsAtMostTheLimitAhead) {
  begin({send(kTransferCount), receive(kTransferCount)});
  send_from_peer(std::vector<float>(1000), kTransferCount);
  EXPECT_EQ(advance(), Progress::kBlocked);
  EXPECT_EQ(take_at_peer(), Pace::kLimit + kHeader + 4000_B);
  const Blocked& blocked = execution_->blocked();
  EXPECT_TRUE(blocked.holds_back);
  ASSERT_EQ(blocked.interests.size(), 1u) << "it could not sleep on a writable socket";
  EXPECT_EQ(blocked.interests[0].readiness, Readiness::kReadable);
}

TEST_F(ExecutionTest, MaySendAsMuchAsItReceives) {
  begin({send(kTransferCount), receive(kTransferCount)});
  send_from_peer(std::vector<float>(1000), kTransferCount);
  advance();
  take_at_peer();
  const std::vector<float> more(500);
  const std::array<transport::ConstPiece, 1> pieces = {std::as_bytes(std::span(more))};
  peer_->data().try_send(kOwnRank, pieces);
  EXPECT_EQ(advance(), Progress::kBlocked);
  EXPECT_EQ(take_at_peer(), 2000_B);
}

TEST_F(ExecutionTest, SendsEverythingToAPeerThatHasNotBegunToSend) {
  begin({send(kTransferCount), receive(kTransferCount)});
  EXPECT_EQ(advance(), Progress::kBlocked);
  EXPECT_EQ(take_at_peer(), kHeader + 4_MiB);
  EXPECT_FALSE(execution_->blocked().holds_back);
}

TEST_F(ExecutionTest, FinallySendsEverythingToAPeerThatStopsSending) {
  begin({send(kTransferCount), receive(kTransferCount)});
  send_from_peer(std::vector<float>(1000), kTransferCount);
  Bytes sent;
  int raises = 0;
  for (advance(); execution_->blocked().holds_back; advance()) {
    sent += take_at_peer();
    execution_->raise_limit();
    ++raises;
  }
  EXPECT_EQ(sent + take_at_peer(), kHeader + 4_MiB);
  EXPECT_LE(raises, 4) << "the limit doubles";
}

TEST_F(ExecutionTest, ARankWithNothingToReceiveSendsAtOnce) {
  begin({send(kTransferCount)});
  EXPECT_EQ(advance(), Progress::kDone);
  EXPECT_EQ(take_at_peer(), kHeader + 4_MiB);
}

TEST_F(ExecutionTest, ASmallMessageAndItsHeaderTakeOneCallEachWay) {
  const Elements few(100);
  for (const Step& step : {receive(few), receive_and_reduce(few)}) {
    begin({send(few), step});
    transport_->data().sends = transport_->data().receives = 0;
    const std::vector<float> theirs(100, 0.5F);
    send_from_peer(theirs, few);
    EXPECT_EQ(advance(), Progress::kDone);
    EXPECT_EQ(transport_->data().sends, 1);
    EXPECT_EQ(transport_->data().receives, 1);
    EXPECT_EQ(take_at_peer(), kHeader + 400_B);
  }
  EXPECT_EQ(output_[0], 0.5F);
  EXPECT_EQ(output_[99], 99.5F);
}

TEST_F(ExecutionTest, ContributionsAreWeightedAndPartialResultsAreNot) {
  const Elements few(100);
  const std::vector<float> theirs(100, 8.0F);
  output_.assign(output_.size(), 16.0F);
  Slice input = own(Space::kInput), output = own(Space::kOutput), wire = kWire;
  wire.holds = output.holds = schedule::Holds::kPartial;
  begin({Move{.from = {input, wire}, .to = {own(Space::kOutput, few)}, .count = few},
         Move{.from = {output, input}, .to = {own(Space::kOutput)}, .count = few},
         Move{.from = {input}, .to = {own(Space::kOutput, few * 2)}, .count = few}},
        0.5);
  send_from_peer(theirs, few);
  EXPECT_EQ(advance(), Progress::kDone);
  EXPECT_EQ(output_[103], 3 * 0.5F + 8.0F);
  EXPECT_EQ(output_[3], 16.0F + 3 * 0.5F);
  EXPECT_EQ(output_[203], 3.0F) << "a copy does not change the value";

  wire.holds = schedule::Holds::kContribution;
  input.holds = schedule::Holds::kPartial;
  begin({Move{.from = {wire, input}, .to = {own(Space::kOutput)}, .count = few}}, 0.5);
  send_from_peer(theirs, few);
  EXPECT_EQ(advance(), Progress::kDone);
  EXPECT_EQ(output_[3], 8.0F * 0.5F + 3);
}

/// One message with its header, cut at difficult addresses.
TEST_F(ExecutionTest, PiecesOfAnySizeAreReducedAndStoredCorrectly) {
  std::vector<float> theirs(5000);
  std::iota(theirs.begin(), theirs.end(), 7.0F);
  for (const std::size_t piece : {1u, 3u, 47u, 49u, 51u, 4143u, 4145u, 20'000u}) {
    begin({receive_and_reduce(Elements(2000)), receive(Elements(3000), Elements(2000))});
    output_.assign(output_.size(), 0);
    const auto header = Header{fingerprint_, 20'000_B}.encode();
    std::vector<std::byte> stream(header.begin(), header.end());
    const auto payload = std::as_bytes(std::span(theirs));
    stream.insert(stream.end(), payload.begin(), payload.end());
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      const std::array<transport::ConstPiece, 1> pieces = {
          std::span(stream).subspan(at, std::min(piece, stream.size() - at))};
      peer_->data().try_send(kOwnRank, pieces);
      const bool is_last = at + piece >= stream.size();
      ASSERT_EQ(advance(), is_last ? Progress::kDone : Progress::kBlocked) << piece;
    }
    for (std::size_t i = 0; i < 5000; ++i) {
      ASSERT_EQ(output_[i], i < 2000 ? input_[i] + theirs[i] : theirs[i]) << i << ", " << piece;
    }
  }
}

}  // namespace
}  // namespace peal::engine
