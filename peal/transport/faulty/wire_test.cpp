#include "peal/transport/faulty/wire.h"

#include <poll.h>

#include <array>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/net/checked_stream.h"
#include "peal/net/plain_stream.h"
#include "peal/net/socket.h"
#include "peal/transport/testing/testing.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;
using testing::bytes_of;
using testing::stream_bytes;
using testing::test_deadline;

using StreamPtr = std::unique_ptr<net::Stream>;

/// Two ends of a connection. The bytes that come to `b` have the faults.
struct Ends {
  StreamPtr a;
  StreamPtr b;
};

template <class Stream = net::PlainStream>
Ends connect(DirectionFaults faults = {.delay = milliseconds(1)}) {
  const Fd listener = net::listen_on(net::Address::parse("127.0.0.1:0"));
  auto a = std::make_unique<Stream>(
      net::connect_to(net::local_address(listener.get()), test_deadline()));
  auto b = std::make_unique<Stream>(*net::accept_from(listener.get(), test_deadline()));
  return {std::move(a), with_faults(std::move(b), std::move(faults))};
}

std::vector<std::byte> read(net::Stream& stream, std::size_t size) {
  std::vector<std::byte> bytes(size);
  net::read_all(stream, bytes, test_deadline());
  return bytes;
}

/// Whether the stream becomes readable in time. Tests pass a long time if it must, a short time if
/// it must not.
bool is_readable(const net::Stream& stream, Timeout within) {
  pollfd entry{stream.fd(), POLLIN, 0};
  return net::poll_until({&entry, 1}, Deadline::after(within));
}

bool is_closed(net::Stream& stream) {
  std::array<std::byte, 1> byte{};
  return is_readable(stream, test_deadline().left()) && stream.try_read(byte).closed;
}

TEST(WireTest, ManyBytesPassInBothDirections) {
  const Ends ends = connect();
  const auto there = stream_bytes(0, 1, 0, 10'000'000);
  const auto back = stream_bytes(1, 0, 0, 10'000'000);
  auto sent =
      std::async(std::launch::async, [&] { net::write_all(*ends.a, there, test_deadline()); });
  EXPECT_EQ(read(*ends.b, there.size()), there);
  sent.get();
  sent = std::async(std::launch::async, [&] { net::write_all(*ends.b, back, test_deadline()); });
  EXPECT_EQ(read(*ends.a, back.size()), back);
  sent.get();
}

TEST(WireTest, DelayedBytesComeLater) {
  const Ends ends = connect({.delay = milliseconds(50)});
  const TimePoint begin = Clock::now();
  net::write_all(*ends.a, bytes_of("hello"), test_deadline());
  EXPECT_EQ(read(*ends.b, 5), bytes_of("hello"));
  EXPECT_GE(Clock::now() - begin, milliseconds(50));
}

TEST(WireTest, ASlowLineTakesItsTime) {
  const Ends ends = connect({.per_second = 1_MiB});
  const auto bytes = stream_bytes(0, 1, 0, 100 << 10);
  const TimePoint begin = Clock::now();
  net::write_all(*ends.a, bytes, test_deadline());
  EXPECT_EQ(read(*ends.b, bytes.size()), bytes);
  EXPECT_GE(Clock::now() - begin, milliseconds(90));
}

TEST(WireTest, DroppedBytesAreReportedToNeitherEnd) {
  Ends ends = connect({.drop_after = 3_B});
  net::write_all(*ends.a, bytes_of("hello"), test_deadline());
  EXPECT_EQ(read(*ends.b, 3), bytes_of("hel"));
  ends.a.reset();
  EXPECT_FALSE(is_readable(*ends.b, milliseconds(50)));
}

TEST(WireTest, ACutClosesBothEnds) {
  const Ends ends = connect({.cut_after = 3_B});
  net::write_all(*ends.a, bytes_of("hello"), test_deadline());
  EXPECT_EQ(read(*ends.b, 3), bytes_of("hel"));
  EXPECT_TRUE(is_closed(*ends.b));
  EXPECT_TRUE(is_closed(*ends.a));
}

TEST(WireTest, APlainStreamAcceptsADamagedByte) {
  const Ends ends = connect({.corrupt = {1_B}});
  net::write_all(*ends.a, bytes_of("abc"), test_deadline());
  auto expected = bytes_of("abc");
  expected[1] ^= std::byte{0xff};
  EXPECT_EQ(read(*ends.b, 3), expected);
}

TEST(WireTest, ACheckedStreamRejectsADamagedByte) {
  const Ends ends = connect<net::CheckedStream>({.corrupt = {20_B}});
  net::write_all(*ends.a, bytes_of("a text that is long enough"), test_deadline());
  try {
    read(*ends.b, 5);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("damaged"));
  }
}

TEST(WireTest, AllSentBytesComeBeforeTheEnd) {
  Ends ends = connect();
  const auto bytes = stream_bytes(1, 0, 0, 100'000);
  net::write_all(*ends.b, bytes, test_deadline());
  net::hang_up(*ends.b);
  EXPECT_EQ(read(*ends.a, bytes.size()), bytes);
  EXPECT_TRUE(is_closed(*ends.a));
}

TEST(WireTest, OnlyBytesThatThePeerHasAreAcknowledged) {
  const Ends ends = connect();
  EXPECT_EQ(ends.b->unacknowledged(), 0_B);
  // More than all buffers on the way can hold.
  const auto bytes = stream_bytes(1, 0, 0, 1 << 20);
  Bytes sent;
  for (int i = 0; i < 100 && sent < 100_MiB; ++i) {
    const std::array<std::span<const std::byte>, 1> pieces = {bytes};
    sent += ends.b->try_write(pieces).bytes;
  }
  EXPECT_GT(ends.b->unacknowledged(), 0_B);
  read(*ends.a, static_cast<std::size_t>(sent.value));
  const Deadline deadline = test_deadline();
  while (ends.b->unacknowledged() > 0_B && !deadline.passed()) std::this_thread::yield();
  EXPECT_EQ(ends.b->unacknowledged(), 0_B);
}

}  // namespace
}  // namespace peal::transport
