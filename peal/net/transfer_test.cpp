#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/serialize.h"
#include "peal/base/testing/error_of.h"
#include "peal/base/testing/soon.h"
#include "peal/net/socket.h"

namespace peal::net {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

TEST(TransferTest, PiecesArriveInOrder) {
  const SocketPair pair = make_socket_pair();
  const std::array pieces = {bytes_of("one "), bytes_of(""), bytes_of("two")};
  EXPECT_EQ(try_write(pair.a.get(), pieces).bytes, 7_B);
  std::array<std::byte, 16> received;
  const Moved moved = try_read(pair.b.get(), received);
  EXPECT_EQ(moved.bytes, 7_B);
  EXPECT_EQ(std::memcmp(received.data(), "one two", 7), 0);
}

TEST(TransferTest, TryWriteTakesAPartOfTooManyPieces) {
  const SocketPair pair = make_socket_pair();
  const std::vector<std::span<const std::byte>> pieces(2000, bytes_of("x"));
  const Moved moved = try_write(pair.a.get(), pieces);
  EXPECT_GT(moved.bytes, 0_B);
  EXPECT_LT(moved.bytes, 2000_B);
}

TEST(TransferTest, NoBytesToReadIsNotTheEndOfTheStream) {
  const SocketPair pair = make_socket_pair();
  std::array<std::byte, 1> byte;
  EXPECT_FALSE(try_read(pair.b.get(), byte).closed);
  EXPECT_FALSE(try_read(pair.b.get(), {}).closed);
  EXPECT_EQ(try_read(pair.b.get(), byte).bytes, 0_B);
}

TEST(TransferTest, AFullSocketTakesNoMoreBytes) {
  const SocketPair pair = make_socket_pair();
  const std::vector<std::byte> much = pattern(1 << 20);
  const std::array pieces = {std::span<const std::byte>(much)};
  while (try_write(pair.a.get(), pieces).bytes > 0_B) {
  }
  const Moved moved = try_write(pair.a.get(), pieces);
  EXPECT_EQ(moved.bytes, 0_B);
  EXPECT_FALSE(moved.closed);
  EXPECT_EQ(
      error_of([&] { write_all(pair.a.get(), much, Deadline::after(milliseconds(10))); }).kind(),
      ErrorKind::kTimeout);
}

TEST(TransferTest, TheEndOfAStreamIsReportedOnBothSidesWithoutASignal) {
  SocketPair pair = make_socket_pair();
  write_all(pair.b.get(), bytes_of("last"), soon());
  pair.b.reset();
  std::array<std::byte, 8> received;
  EXPECT_EQ(try_read(pair.a.get(), received).bytes, 4_B);
  EXPECT_TRUE(try_read(pair.a.get(), received).closed);
  const std::array pieces = {bytes_of("x")};
  EXPECT_TRUE(try_write(pair.a.get(), pieces).closed);
}

TEST(TransferTest, ManyBytesArriveComplete) {
  const SocketPair pair = make_socket_pair();
  const std::vector<std::byte> sent = pattern(3 << 20);
  auto writing = std::async(std::launch::async, [&] { write_all(pair.a.get(), sent, soon()); });
  std::vector<std::byte> received(sent.size());
  read_all(pair.b.get(), received, soon());
  writing.get();
  EXPECT_EQ(received, sent);
}

TEST(TransferTest, ReadAllFailsIfTooFewBytesCome) {
  SocketPair pair = make_socket_pair();
  write_all(pair.b.get(), bytes_of("abc"), soon());
  std::array<std::byte, 8> received;
  EXPECT_EQ(
      error_of([&] { read_all(pair.a.get(), received, Deadline::after(milliseconds(10))); }).kind(),
      ErrorKind::kTimeout);
  write_all(pair.b.get(), bytes_of("abc"), soon());
  pair.b.reset();
  try {
    read_all(pair.a.get(), received, soon());
    FAIL() << "read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
    EXPECT_THAT(error.what(), HasSubstr("3 of 8 bytes"));
  }
}

TEST(TransferTest, TransfersToAPeerThatHasLeftFail) {
  SocketPair pair = make_socket_pair();
  pair.b.reset();
  EXPECT_EQ(error_of([&] { write_all(pair.a.get(), bytes_of("x"), soon()); }).kind(),
            ErrorKind::kPeerLost);
  const int some = pair.a.get();
  EXPECT_EQ(error_of([&] {
              send_fds(pair.a.get(), {&some, 1}, soon());
            }).kind(),
            ErrorKind::kPeerLost);
  EXPECT_EQ(error_of([&] { receive_fds(pair.a.get(), 1, soon()); }).kind(), ErrorKind::kPeerLost);
}

TEST(TransferTest, AWrongDescriptorIsAResourceErrorAndNotALostPeer) {
  std::array<std::byte, 1> byte;
  EXPECT_EQ(error_of([&] { try_read(-1, byte); }).kind(), ErrorKind::kResource);
}

TEST(TransferTest, DescriptorsArriveOpenAndAreNotInherited) {
  const SocketPair pair = make_socket_pair();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd reader(ends[0]);
  const Fd writer(ends[1]);
  send_fds(pair.a.get(), ends, soon());
  const std::vector<Fd> received = receive_fds(pair.b.get(), 2, soon());
  ASSERT_EQ(received.size(), 2u);
  EXPECT_TRUE(::fcntl(received[0].get(), F_GETFD) & FD_CLOEXEC);
  ASSERT_EQ(::write(received[1].get(), "hi", 2), 2);
  std::array<char, 2> text{};
  ASSERT_EQ(::read(reader.get(), text.data(), 2), 2);
  EXPECT_EQ(std::string_view(text.data(), 2), "hi");
}

TEST(TransferTest, AWrongNumberOfDescriptorsIsAMismatch) {
  const SocketPair pair = make_socket_pair();
  const int some = pair.a.get();
  send_fds(pair.a.get(), {&some, 1}, soon());
  EXPECT_EQ(error_of([&] { receive_fds(pair.b.get(), 2, soon()); }).kind(), ErrorKind::kMismatch);
  EXPECT_EQ(error_of([&] { send_fds(pair.a.get(), {}, soon()); }).kind(), ErrorKind::kUsage);
}

TEST(TransferTest, ReceiveFdsTimesOutIfNoDescriptorsCome) {
  const SocketPair pair = make_socket_pair();
  EXPECT_EQ(
      error_of([&] { receive_fds(pair.b.get(), 1, Deadline::after(milliseconds(10))); }).kind(),
      ErrorKind::kTimeout);
}

}  // namespace
}  // namespace peal::net
