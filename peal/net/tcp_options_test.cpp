#include "peal/net/tcp_options.h"

#include <sys/socket.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/base/testing/soon.h"
#include "peal/net/socket.h"

namespace peal::net {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TcpOptionsTest : public ::testing::Test {
 protected:
  Deadline soon_ = soon();
  Fd listener_ = listen_on(Address::parse("127.0.0.1:0"));
  Fd client_ = connect_to(local_address(listener_.get()), soon_);
  Fd server_ = std::move(*accept_from(listener_.get(), soon_));

  int send_buffer() const {
    int size = 0;
    socklen_t length = sizeof size;
    EXPECT_EQ(::getsockopt(client_.get(), SOL_SOCKET, SO_SNDBUF, &size, &length), 0);
    return size;
  }

  /// Writes until the connection accepts no more. Nothing reads. Returns the accepted size.
  Bytes fill() {
    const std::vector<std::byte> bytes(64 << 10);
    const std::array<std::span<const std::byte>, 1> pieces = {bytes};
    Bytes taken;
    while (true) {
      const Moved moved = try_write(client_.get(), pieces);
      if (moved.bytes == 0_B) return taken;
      taken += moved.bytes;
    }
  }

  void pass(Bytes size) {
    std::vector<std::byte> out(static_cast<std::size_t>(size.value)), in(out.size());
    write_all(client_.get(), out, soon_);
    read_all(server_.get(), in, soon_);
  }
};

/// Every kernel has reno.
TEST_F(TcpOptionsTest, AConnectionUsesTheCongestionControlThatWasSet) {
  EXPECT_FALSE(congestion_control(client_.get()).empty());
  set_congestion_control(client_.get(), "reno");
  EXPECT_EQ(congestion_control(client_.get()), "reno");
  EXPECT_NO_THROW(check_congestion_control("reno"));
}

TEST_F(TcpOptionsTest, TheErrorNamesAMissingCongestionControlAndTheAvailableOnes) {
  const Error error = error_of([] { check_congestion_control("pigeons"); });
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("pigeons"), HasSubstr("reno")));
}

TEST_F(TcpOptionsTest, BytesBeyondTheReceiversBufferStayUnacknowledgedUntilTheyAreRead) {
  EXPECT_EQ(unacknowledged(client_.get()), 0_B);
  const Bytes taken = fill();
  EXPECT_GT(unacknowledged(client_.get()), 0_B);
  std::vector<std::byte> in(static_cast<std::size_t>(taken.value));
  read_all(server_.get(), in, soon_);
  while (unacknowledged(client_.get()) > 0_B && !soon_.passed()) std::this_thread::yield();
  EXPECT_EQ(unacknowledged(client_.get()), 0_B);
  EXPECT_EQ(unacknowledged(-1), 0_B);
}

TEST_F(TcpOptionsTest, ReceivedBytesAreUnreadUntilTheyAreRead) {
  EXPECT_EQ(unread(server_.get()), 0_B);
  std::array<std::byte, 3> bytes{};
  write_all(client_.get(), bytes, soon_);
  while (unread(server_.get()) < 3_B && !soon_.passed()) std::this_thread::yield();
  EXPECT_EQ(unread(server_.get()), 3_B);
  read_all(server_.get(), bytes, soon_);
  EXPECT_EQ(unread(server_.get()), 0_B);
  EXPECT_EQ(unread(-1), 0_B);
}

TEST_F(TcpOptionsTest, ABoundedSendBufferDoesNotGrow) {
  bound_send_buffer(client_.get(), 8_KiB);
  const int before = send_buffer();
  EXPECT_EQ(before, 16 << 10) << "the kernel doubles the size for its bookkeeping";
  for (int i = 0; i < 64; ++i) pass(32_KiB);
  fill();
  EXPECT_EQ(send_buffer(), before);
}

TEST_F(TcpOptionsTest, AnUnboundedSendBufferGrowsAgain) {
  bound_send_buffer(client_.get(), 8_KiB);
  unbound_send_buffer(client_.get());
  const int before = send_buffer();
  for (int i = 0; i < 64; ++i) pass(32_KiB);
  fill();
  EXPECT_GT(send_buffer(), before);
}

TEST_F(TcpOptionsTest, TheCapacityIsKnownOnceBytesHaveBeenDelivered) {
  for (int i = 0; i < 16; ++i) pass(64_KiB);
  EXPECT_GT(line_capacity(client_.get()), 0_B);
  EXPECT_LT(line_capacity(client_.get()), 64_MiB);
  EXPECT_EQ(line_capacity(listener_.get()), 0_B);
}

}  // namespace
}  // namespace peal::net
