// Beats over real connections. tests/drill/hosts_test.cpp tests lines that are cut, between network
// namespaces.
#include "peal/transport/liveness/heartbeats.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "peal/base/serialize.h"
#include "peal/net/plain_stream.h"
#include "peal/net/socket.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;
using State = Presence::State;

/// Not faster than systems acknowledge: they may delay an acknowledgement by 40 ms.
constexpr HeartbeatLimits kLimits{.every = milliseconds(50), .lost_after = milliseconds(400)};
constexpr auto kLimit = std::chrono::seconds(20);

std::pair<Fd, Fd> connection() {
  const Fd listener = net::listen_on(net::Address::parse("127.0.0.1:0"));
  const Deadline deadline = Deadline::after(kLimit);
  Fd one = net::connect_to(net::local_address(listener.get()), deadline);
  return {std::move(one), *net::accept_from(listener.get(), deadline)};
}

std::map<Rank, std::unique_ptr<net::Stream>> to(Rank peer, Fd fd) {
  std::map<Rank, std::unique_ptr<net::Stream>> connections;
  connections.emplace(peer, std::make_unique<net::PlainStream>(std::move(fd)));
  return connections;
}

bool comes_to(const Heartbeats& beats, Rank peer, State state) {
  const Deadline deadline = Deadline::after(kLimit);
  while (beats.presence(peer).state != state) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

void expect_no_loss(Rank peer) { ADD_FAILURE() << "rank " << peer << " was given up"; }

/// A stream on which each read finds more beats. The beats are empty, because no rank beside the
/// peer is stopped.
class EndlessBeats final : public net::Stream {
 public:
  EndlessBeats(Fd fd, const std::atomic<bool>& ends) : fd_(std::move(fd)), ends_(ends) {}

  net::Moved try_read(std::span<std::byte> into) override {
    if (ends_) return {.bytes = {}, .closed = true};
    std::ranges::fill(into, std::byte{});
    return {.bytes = Bytes(static_cast<std::int64_t>(into.size()))};
  }
  net::Moved try_write(std::span<const std::span<const std::byte>> pieces) override {
    return {.bytes = Bytes(static_cast<std::int64_t>(pieces[0].size()))};
  }
  bool try_flush() override { return true; }
  bool has_unsent() const noexcept override { return false; }
  bool has_read_ahead() const noexcept override { return false; }
  Bytes unacknowledged() const override { return {}; }
  int fd() const noexcept override { return fd_.get(); }
  Fd release() noexcept override { return std::move(fd_); }

 private:
  Fd fd_;
  const std::atomic<bool>& ends_;
};

TEST(HeartbeatsTest, BeatingRanksKnowThatTheOtherRuns) {
  auto [one, other] = connection();
  const Heartbeats a(to(1, std::move(one)), kLimits, expect_no_loss);
  const Heartbeats b(to(0, std::move(other)), kLimits, expect_no_loss);
  EXPECT_TRUE(comes_to(a, 1, State::kRunning));
  EXPECT_TRUE(comes_to(b, 0, State::kRunning));
}

TEST(HeartbeatsTest, ASilentProcessWhoseSystemAnswersIsNotLost) {
  auto [one, other] = connection();  // no thread reads or writes the other end
  const Heartbeats beats(to(1, std::move(one)), kLimits, expect_no_loss);
  EXPECT_TRUE(comes_to(beats, 1, State::kSilent));
  const Deadline later = Deadline::after(2 * kLimits.lost_after);
  while (!later.passed()) ASSERT_EQ(beats.presence(1).state, State::kSilent);
}

TEST(HeartbeatsTest, AProcessThatReadsNothingForLongIsNotLost) {
  constexpr HeartbeatLimits kFast{.every = milliseconds(1), .lost_after = milliseconds(400)};
  auto [one, other] = connection();
  const int little = 4096;  // so that the buffer is full after seconds and not minutes
  ASSERT_EQ(::setsockopt(other.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
  const Heartbeats beats(to(1, std::move(one)), kFast, expect_no_loss);
  const Deadline later = Deadline::after(std::chrono::seconds(3));
  while (!later.passed()) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(beats.presence(1).state, State::kSilent);
}

TEST(HeartbeatsTest, ARankThatLeavesIsNotLost) {
  auto [one, other] = connection();
  const Heartbeats beats(to(1, std::move(one)), kLimits, expect_no_loss);
  {
    const Heartbeats leaving(to(0, std::move(other)), kLimits, expect_no_loss);
    ASSERT_TRUE(comes_to(beats, 1, State::kRunning));
  }
  EXPECT_TRUE(comes_to(beats, 1, State::kUnknown));
}

TEST(HeartbeatsTest, ARankNamesTheStoppedRanksOfItsHost) {
  std::atomic<bool> stopped = true;
  auto [one, other] = connection();
  const Heartbeats a(to(1, std::move(one)), kLimits, expect_no_loss);
  const Heartbeats b(to(0, std::move(other)), kLimits, expect_no_loss, [&] {
    return stopped ? std::vector<Rank>{2, 3} : std::vector<Rank>{};
  });
  EXPECT_TRUE(comes_to(a, 3, State::kStopped));
  EXPECT_EQ(a.presence(2).state, State::kStopped);
  EXPECT_EQ(a.presence(1).state, State::kRunning);
  stopped = false;
  EXPECT_TRUE(comes_to(a, 3, State::kUnknown));
}

TEST(HeartbeatsTest, AMalformedBeatIsDamage) {
  auto [one, other] = connection();
  std::atomic<bool> lost = false;
  const Heartbeats beats(to(1, std::move(one)), kLimits, [&](Rank) { lost = true; });
  net::write_all(other.get(), bytes_of(std::string(8, '\xff')), Deadline::after(kLimit));
  EXPECT_TRUE(comes_to(beats, 1, State::kDamaged));
  const Deadline soon = Deadline::after(kLimit);
  while (!lost && !soon.passed()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(lost);
}

TEST(HeartbeatsTest, APeerThatFloodsBeatsDoesNotDelayTheOthers) {
  auto [one, other] = connection();
  auto [endless, unused] = connection();
  std::atomic<bool> ends = false;
  std::map<Rank, std::unique_ptr<net::Stream>> connections = to(1, std::move(one));
  connections.emplace(0, std::make_unique<EndlessBeats>(std::move(endless), ends));
  const Heartbeats a(std::move(connections), kLimits, expect_no_loss);
  const Heartbeats b(to(0, std::move(other)), kLimits, expect_no_loss);
  EXPECT_TRUE(comes_to(a, 1, State::kRunning));
  EXPECT_EQ(a.presence(0).state, State::kRunning);
  ends = true;
}

TEST(HeartbeatsTest, NothingIsKnownOfARankThatIsNotWatched) {
  auto [one, other] = connection();
  const Heartbeats beats(to(1, std::move(one)), kLimits, expect_no_loss);
  EXPECT_EQ(beats.presence(7).state, State::kUnknown);
}

}  // namespace
}  // namespace peal::transport
