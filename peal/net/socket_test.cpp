#include "peal/net/socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/serialize.h"
#include "peal/base/testing/error_of.h"
#include "peal/base/testing/soon.h"
#include "peal/net/testing/unix_address.h"

namespace peal::net {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

/// On a machine without IPv6 the tests say so and use IPv4 only.
std::vector<std::string> local_addresses() {
  std::vector<std::string> addresses = {"127.0.0.1:0", unix_address("local").to_string()};
  try {
    listen_on(Address::parse("[::1]:0"));
    addresses.push_back("[::1]:0");
  } catch (const Error& error) {
    std::cout << "without IPv6, since this machine has no ::1: " << error.what() << "\n";
  }
  return addresses;
}

TEST(SocketTest, ALocalAddressIsReachedFromTheSameAddress) {
  EXPECT_EQ(own_address_towards("127.0.0.1"), "127.0.0.1");
  if (std::ranges::count(local_addresses(), "[::1]:0") > 0) {
    EXPECT_EQ(own_address_towards("::1"), "::1");
  }
  EXPECT_EQ(own_address_towards("no-address"), "");
}

/// A port of 127.0.0.1 without a listener.
Address vacant_address() {
  const Fd listener = listen_on(Address::parse("127.0.0.1:0"));
  return local_address(listener.get());
}

TEST(SocketTest, AReservedPortIsAvailableByItsNumber) {
  const Fd reservation = reserve(Address::parse("127.0.0.1:0"));
  const Address address = local_address(reservation.get());
  const Fd listener = listen_on(address);
  const Fd client = connect_to(address, soon());
  EXPECT_TRUE(accept_from(listener.get(), soon()));
  EXPECT_EQ(error_of([&] { listen_on(address); }).kind(), ErrorKind::kResource);
}

TEST(SocketTest, ConnectionsWorkOverEveryAddressFamily) {
  for (const std::string& text : local_addresses()) {
    const Fd listener = listen_on(Address::parse(text));
    const Address address = local_address(listener.get());
    const Fd client = connect_to(address, soon());
    const std::optional<Fd> server = accept_from(listener.get(), soon());
    ASSERT_TRUE(server) << text;
    EXPECT_EQ(peer_address(client.get()), address);
    if (!address.is_unix()) {
      set_no_delay(client.get());
      EXPECT_EQ(peer_address(server->get()), local_address(client.get()));
    }
    write_all(client.get(), bytes_of("ping"), soon());
    std::array<std::byte, 4> received;
    read_all(server->get(), received, soon());
    EXPECT_EQ(std::memcmp(received.data(), "ping", 4), 0);
  }
}

TEST(SocketTest, DescriptorsDoNotBlockAndAreNotInherited) {
  const Fd listener = listen_on(Address::parse("127.0.0.1:0"));
  const Fd client = connect_to(local_address(listener.get()), soon());
  const std::optional<Fd> server = accept_from(listener.get(), soon());
  for (const int fd : {listener.get(), client.get(), server->get()}) {
    EXPECT_TRUE(::fcntl(fd, F_GETFL) & O_NONBLOCK);
    EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
  }
}

TEST(SocketTest, TheErrorNamesATakenPortAndSaysWhatToDo) {
  const Fd listener = listen_on(Address::parse("127.0.0.1:0"));
  const Address address = local_address(listener.get());
  const Error error = error_of([&] { listen_on(address); });
  EXPECT_EQ(error.kind(), ErrorKind::kResource);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("port " + std::to_string(address.port()) + " is already in use"),
                    HasSubstr("on 127.0.0.1"),
                    HasSubstr("MASTER_PORT")));
}

TEST(SocketTest, TheErrorNamesATakenUnixSocket) {
  const Address address = unix_address("taken");
  const Fd listener = listen_on(address);
  EXPECT_THAT(error_of([&] { listen_on(address); }).what(),
              HasSubstr(address.to_string() + " is already in use"));
}

TEST(SocketTest, ListenOnAnAddressOfAnotherMachineFails) {
  const Error error = error_of([] { listen_on(Address::parse("192.0.2.1:4711")); });
  EXPECT_EQ(error.kind(), ErrorKind::kResource);
  EXPECT_THAT(error.what(), HasSubstr("192.0.2.1 is not an address of this machine"));
}

TEST(SocketTest, APortBoundOnOneAddressIsFreeOnOthers) {
  const Fd listener = listen_on(Address::parse("127.0.0.1:0"));
  const Address elsewhere =
      Address::parse("127.0.0.2:0").with_port(local_address(listener.get()).port());
  EXPECT_EQ(error_of([&] { connect_to(elsewhere, soon()); }).kind(), ErrorKind::kPeerLost);
  EXPECT_TRUE(listen_on(elsewhere));
}

TEST(SocketTest, ARefusedConnectionNamesTheAddress) {
  const Address address = vacant_address();
  const Error error = error_of([&] { connect_to(address, soon()); });
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr(address.to_string()));
  const Address nobody = unix_address("nobody");
  EXPECT_THAT(error_of([&] { connect_to(nobody, soon()); }).what(), HasSubstr(nobody.to_string()));
}

TEST(SocketTest, AListenerThatNeverAcceptsMakesAConnectionTimeOut) {
  const Address address = unix_address("full");
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(socket.get(), address.raw(), address.size()), 0);
  ASSERT_EQ(::listen(socket.get(), 0), 0);
  const Fd queued = connect_to(address, soon());
  const Error error = error_of([&] { connect_to(address, Deadline::after(milliseconds(20))); });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.what(), HasSubstr(address.to_string()));
}

TEST(SocketTest, ConnectPatientlyWaitsForTheListener) {
  const Address address = vacant_address();
  auto client =
      std::async(std::launch::async, [&] { return connect_patiently({address}, soon()); });
  EXPECT_EQ(client.wait_for(milliseconds(30)), std::future_status::timeout);
  const Fd listener = listen_on(address);
  EXPECT_TRUE(accept_from(listener.get(), soon()));
  EXPECT_EQ(peer_address(client.get().get()), address);
}

TEST(SocketTest, ConnectPatientlyUsesTheAddressThatAnswers) {
  const Fd listener = listen_on(Address::parse("127.0.0.1:0"));
  const Address address = local_address(listener.get());
  const Fd client = connect_patiently({vacant_address(), address}, soon());
  EXPECT_EQ(peer_address(client.get()), address);
}

TEST(SocketTest, ConnectPatientlyFailsAtTheDeadlineAndNamesAllAddresses) {
  const Address a = vacant_address();
  const Address b = Address::parse("127.0.0.2:0").with_port(a.port());
  const Error error = error_of([&] {
    connect_patiently({a, b}, Deadline::after(milliseconds(50)));
  });
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(a.to_string()), HasSubstr(b.to_string())));
  EXPECT_EQ(error_of([] { connect_patiently({}, soon()); }).kind(), ErrorKind::kPeerLost);
}

TEST(SocketTest, AcceptReturnsNothingAtTheDeadline) {
  const Fd listener = listen_on(Address::parse("127.0.0.1:0"));
  EXPECT_FALSE(accept_from(listener.get(), Deadline::after(milliseconds(10))));
  EXPECT_FALSE(accept_from(listener.get(), Deadline::after(milliseconds(0))));
}

TEST(SocketTest, PollReturnsAtTheDeadlineAndNotBefore) {
  const Fd listener = listen_on(Address::parse("127.0.0.1:0"));
  pollfd entry{listener.get(), POLLIN, 0};
  const TimePoint begin = Clock::now();
  EXPECT_FALSE(poll_until({&entry, 1}, Deadline(begin + milliseconds(20))));
  EXPECT_GE(Clock::now() - begin, milliseconds(20));
  const Fd client = connect_to(local_address(listener.get()), soon());
  EXPECT_TRUE(poll_until({&entry, 1}, Deadline(TimePoint::max())));
}

TEST(SocketTest, IsClosedDetectsAClosedPeerWithoutReadingBytes) {
  for (const std::string& text : local_addresses()) {
    const Fd listener = listen_on(Address::parse(text));
    const Fd client = connect_to(local_address(listener.get()), soon());
    std::optional<Fd> server = accept_from(listener.get(), soon());
    write_all(server->get(), bytes_of("last"), soon());
    EXPECT_FALSE(is_closed(client.get())) << text;
    server->reset();
    pollfd entry{client.get(), POLLRDHUP, 0};
    ASSERT_TRUE(poll_until({&entry, 1}, soon()));
    EXPECT_TRUE(is_closed(client.get())) << text;
    std::array<std::byte, 4> received;
    EXPECT_NO_THROW(read_all(client.get(), received, soon()));
  }
}

TEST(SocketTest, HangUpDeliversWrittenBytesEvenIfSomeAreUnread) {
  for (const std::string& text : local_addresses()) {
    const Fd listener = listen_on(Address::parse(text));
    const Fd client = connect_to(local_address(listener.get()), soon());
    std::optional<Fd> server = accept_from(listener.get(), soon());
    write_all(client.get(), bytes_of("nobody reads this"), soon());
    write_all(server->get(), bytes_of("last words"), soon());
    hang_up(std::move(*server));
    std::array<std::byte, 10> received;
    EXPECT_NO_THROW(read_all(client.get(), received, soon())) << text;
    EXPECT_TRUE(try_read(client.get(), received).closed) << text;
  }
  hang_up(Fd());
}

TEST(SocketTest, NeighbourAtReturnsTheUserAndProcessAtTheOtherEnd) {
  const Fd listener = listen_on(unix_address("neighbour"));
  const Fd client = connect_to(local_address(listener.get()), soon());
  const std::optional<Fd> server = accept_from(listener.get(), soon());
  for (const int fd : {client.get(), server->get()}) {
    EXPECT_EQ(neighbour_at(fd).user, ::geteuid());
    EXPECT_EQ(neighbour_at(fd).process, ::getpid());
  }
  EXPECT_EQ(error_of([] { neighbour_at(-1); }).kind(), ErrorKind::kResource);
}

TEST(SocketTest, PeerAddressOfAResetConnectionIsALostPeer) {
  const Fd listener = listen_on(Address::parse("127.0.0.1:0"));
  const Fd client = connect_to(local_address(listener.get()), soon());
  std::optional<Fd> server = accept_from(listener.get(), soon());
  const linger at_once{1, 0};
  ASSERT_EQ(::setsockopt(server->get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  server.reset();
  pollfd entry{client.get(), POLLIN, 0};
  ASSERT_TRUE(poll_until({&entry, 1}, soon()));
  EXPECT_EQ(error_of([&] { peer_address(client.get()); }).kind(), ErrorKind::kPeerLost);
}

TEST(SocketTest, PeerNameWorksForAPeerThatIsGone) {
  EXPECT_EQ(peer_name(-1), "a peer that is gone");
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const Fd a(ends[0]);
  const Fd b(ends[1]);
  EXPECT_EQ(peer_name(a.get()), "a process of this machine");
}

}  // namespace
}  // namespace peal::net
