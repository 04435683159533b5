// Tests that only the TCP store needs: servers that die, freeze or start late; clients without the
// secret, slow clients, and clients that send garbage. store_conformance_test.cpp tests the
// operations of Store.
#include "peal/store/tcp_store.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/serialize.h"
#include "peal/base/testing/error_of.h"
#include "peal/base/testing/in_child.h"
#include "peal/base/testing/soon.h"
#include "peal/net/frame.h"
#include "peal/net/socket.h"
#include "peal/net/testing/prove.h"
#include "peal/net/testing/unix_address.h"
#include "peal/store/tcp_protocol.h"
#include "peal/store/tcp_store_server.h"

namespace peal::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

const net::ProofContext kContext{Secret("hush"), "job", "store"};

std::vector<Fd> just(Fd listener) {
  std::vector<Fd> listeners;
  listeners.push_back(std::move(listener));
  return listeners;
}

Fd loopback_listener() { return net::listen_on(net::Address::parse("127.0.0.1:0")); }

std::unique_ptr<TcpStoreServer> serve(const net::AcceptLimits& limits = {}) {
  return std::make_unique<TcpStoreServer>(just(loopback_listener()), kContext, limits);
}

std::unique_ptr<Store> client_of(const TcpStoreServer& server, Timeout timeout = seconds(20)) {
  return connect_tcp_store({server.address()}, kContext, timeout, soon());
}

/// Waits until the server has closed this connection.
bool gets_closed(int fd) {
  while (true) {
    std::array<std::byte, 256> bytes;
    if (net::try_read(fd, bytes).closed) return true;
    pollfd entry{fd, POLLIN, 0};
    if (!net::poll_until({&entry, 1}, soon())) return false;
  }
}

/// A connection that has proved the secret and can now send any bytes.
Fd proved_connection(const TcpStoreServer& server) {
  Fd fd = net::connect_to(server.address(), soon());
  net::prove(fd.get(), net::Role::kConnector, kContext, {}, soon());
  return fd;
}

TEST(TcpStoreTest, CallsFailWhenTheServerDies) {
  auto server = serve();
  const auto client = client_of(*server);
  auto waiting = std::async(std::launch::async,
                            [&] { return error_of([&] { client->get("never", soon()); }); });
  EXPECT_EQ(waiting.wait_for(milliseconds(20)), std::future_status::timeout);
  const std::string address = server->address().to_string();
  server.reset();
  for (const Error& error : {waiting.get(), error_of([&] { client->set("key", "value"); })}) {
    EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(address), HasSubstr("is gone")));
  }
  EXPECT_FALSE(client->answers(soon()));
}

TEST(TcpStoreTest, AServerMayStartLaterThanItsClients) {
  Fd listener = loopback_listener();
  const net::Address address = net::local_address(listener.get());
  listener.reset();
  auto connecting = std::async(std::launch::async, [&] {
    return connect_tcp_store({address}, kContext, seconds(20), soon());
  });
  const TcpStoreServer server(just(net::listen_on(address)), kContext);
  connecting.get()->set("key", "value");
  EXPECT_EQ(client_of(server)->try_get("key"), "value");
}

TEST(TcpStoreTest, ConnectFailsAtTheDeadlineWithoutAServer) {
  const net::Address address = net::local_address(loopback_listener().get());
  const Error error = error_of([&] {
    connect_tcp_store({address}, kContext, seconds(20), Deadline::after(milliseconds(30)));
  });
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr(address.to_string()));
}

TEST(TcpStoreTest, ACallTimesOutIfTheServerFreezes) {
  const Fd listener = loopback_listener();
  const net::Address address = net::local_address(listener.get());
  std::optional<Fd> connection;
  auto freezing = std::async(std::launch::async, [&] {
    connection = net::accept_from(listener.get(), soon());
    net::prove(connection->get(), net::Role::kAcceptor, kContext, {}, soon());
  });
  const auto client = connect_tcp_store({address}, kContext, milliseconds(30), soon());
  freezing.get();
  const Error error = error_of([&] { client->set("key", "value"); });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(address.to_string()), HasSubstr("\"key\"")));
  EXPECT_FALSE(client->answers(Deadline::after(milliseconds(30))));
}

TEST(TcpStoreTest, ALateReplyIsNotTakenForTheReplyOfTheNextCall) {
  const Fd listener = loopback_listener();
  const net::Address address = net::local_address(listener.get());
  std::optional<Fd> connection;
  auto accepting = std::async(std::launch::async, [&] {
    connection = net::accept_from(listener.get(), soon());
    net::prove(connection->get(), net::Role::kAcceptor, kContext, {}, soon());
  });
  const auto client = connect_tcp_store({address}, kContext, seconds(20), soon());
  accepting.get();
  EXPECT_FALSE(client->answers(Deadline::after(milliseconds(30))));
  auto next = std::async(std::launch::async, [&] { return client->try_get("key"); });
  for (const char* const value : {"late", "value"}) {
    const Reply reply{Outcome::kDone, {value}};
    net::write_all(connection->get(), bytes_of(net::frame_of(encode(reply))), soon());
  }
  EXPECT_EQ(next.get(), "value");
  EXPECT_FALSE(net::accept_from(listener.get(), Deadline(Clock::now()))) << "no second connection";
}

TEST(TcpStoreTest, ALaterConnectionThatTheServerDropsIsMadeAgain) {
  const Fd listener = loopback_listener();
  const net::Address address = net::local_address(listener.get());
  std::vector<Fd> connections;
  auto accepting = std::async(std::launch::async, [&] {
    for (const bool is_dropped : {false, true, false}) {
      Fd one = *net::accept_from(listener.get(), soon());
      if (is_dropped) continue;
      net::prove(one.get(), net::Role::kAcceptor, kContext, {}, soon());
      connections.push_back(std::move(one));
    }
    net::write_all(connections.at(1).get(), bytes_of(net::frame_of(encode(Reply()))), soon());
  });
  const auto client = connect_tcp_store({address}, kContext, seconds(20), soon());
  EXPECT_NO_THROW(client->set_will("key", "value"));  // on a connection of its own
  accepting.get();
}

TEST(TcpStoreTest, ConnectRetriesIfTheServerClosesBeforeTheProof) {
  Fd listener = loopback_listener();
  const net::Address address = net::local_address(listener.get());
  auto connecting = std::async(std::launch::async, [&] {
    return connect_tcp_store({address}, kContext, seconds(20), soon());
  });
  net::accept_from(listener.get(), soon());  // closes it at once, as an ending server does
  const TcpStoreServer server(just(std::move(listener)), kContext);
  EXPECT_NO_THROW(connecting.get()->set("key", "value"));
}

TEST(TcpStoreTest, AnotherSecretIsAUsageErrorAndOthersAreServed) {
  const auto server = serve();
  const auto client = client_of(*server);
  const Error error = error_of([&] {
    connect_tcp_store({server->address()}, {Secret("wrong"), "job", "store"}, seconds(20), soon());
  });
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("PEAL_SECRET"));
  client->set("key", "value");
}

TEST(TcpStoreTest, ConnectionsThatSendGarbageAreClosedAndOthersAreServed) {
  const auto server = serve();
  const auto client = client_of(*server);
  const Fd stranger = net::connect_to(server->address(), soon());
  net::write_all(stranger.get(), bytes_of("GET / HTTP/1.1\r\n\r\n"), soon());
  EXPECT_TRUE(gets_closed(stranger.get()));
  const Fd unproved = net::connect_to(server->address(), soon());
  net::write_all(unproved.get(), bytes_of(net::frame_of(encode(SetRequest{"key", "bad"}))), soon());
  EXPECT_TRUE(gets_closed(unproved.get()));
  for (const std::string& rude : {net::frame_of("\x7f nonsense"), std::string(4, '\xff')}) {
    const Fd connection = proved_connection(*server);
    net::write_all(connection.get(), bytes_of(rude), soon());
    EXPECT_TRUE(gets_closed(connection.get()));
  }
  EXPECT_EQ(client->try_get("key"), std::nullopt);
}

TEST(TcpStoreTest, ClientsThatStopHalfWayDoNotDelayOthers) {
  const auto server = serve();
  std::vector<Fd> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(net::connect_to(server->address(), soon()));  // proves nothing
    slow.push_back(proved_connection(*server));                  // sends half a request
    net::write_all(slow.back().get(), bytes_of(std::string("\x08\0\0", 3)), soon());
  }
  const auto client = client_of(*server);
  EXPECT_EQ(client->add("n", 1), 1);
}

TEST(TcpStoreTest, SilentConnectionsAreClosedInTime) {
  const auto server = serve({.proof = milliseconds(30)});
  const Fd silent = net::connect_to(server->address(), soon());
  EXPECT_TRUE(gets_closed(silent.get()));
}

TEST(TcpStoreTest, AClientIsServedDespiteManySilentConnections) {
  const auto server =
      serve({.half_open = 4, .proof = seconds(3600), .proof_in_a_crowd = milliseconds(10)});
  std::vector<Fd> crowd;
  for (int i = 0; i < 12; ++i) crowd.push_back(net::connect_to(server->address(), soon()));
  EXPECT_EQ(client_of(*server)->add("n", 1), 1);
}

/// The number of strangers that connect before the client. A server that counted all failures
/// together would allow four a second, and accept the client after more than a minute.
constexpr int kStrangers = 300;
constexpr net::AcceptLimits kFewFailures{.half_open = 4, .failures = 4};
constexpr auto kLongBeforeAllAreCounted = seconds(10);

TEST(TcpStoreTest, ProcessesOfAnotherUserDoNotBlockAClient) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  const auto address = net::unix_address("tcp-store-test");
  std::vector<std::string> reports;
  const Report report = [&](std::string_view text) { reports.emplace_back(text); };
  Fd listener = net::listen_on(address);
  ASSERT_TRUE(holds_in_child([&] {
    if (::setuid(65534) != 0) return false;
    for (int i = 0; i < kStrangers; ++i) net::connect_to(address, soon());
    return true;
  }));
  auto server =
      std::make_unique<TcpStoreServer>(just(std::move(listener)), kContext, kFewFailures, report);
  const auto client = connect_tcp_store(
      {address}, kContext, seconds(20), Deadline::after(kLongBeforeAllAreCounted));
  EXPECT_EQ(client->add("n", 1), 1);
  server.reset();
  ASSERT_FALSE(reports.empty());
  EXPECT_THAT(reports, ::testing::Each(HasSubstr("belongs to another user")));
}

TEST(TcpStoreTest, FailuresOfOneAddressDoNotBlockClientsOfAnother) {
  const auto server = serve(kFewFailures);
  const net::Address elsewhere = net::Address::parse("127.0.0.2:0");
  std::vector<Fd> strangers;
  for (int i = 0; i < kStrangers; ++i) {
    Fd& stranger = strangers.emplace_back(net::reserve(elsewhere));
    const net::Address server_address = server->address();
    ::connect(stranger.get(), server_address.raw(), server_address.size());
    pollfd entry{stranger.get(), POLLOUT, 0};
    ASSERT_TRUE(net::poll_until({&entry, 1}, soon()));
    net::write_all(stranger.get(), bytes_of("GET / HTTP/1.1\r\n"), soon());
  }
  const auto client = connect_tcp_store(
      {server->address()}, kContext, seconds(20), Deadline::after(kLongBeforeAllAreCounted));
  EXPECT_EQ(client->add("n", 1), 1);
}

TEST(TcpStoreTest, AnAddressThatFailsTooOftenIsClosedUnreadAndAcceptedLater) {
  const auto server = serve({.failures = 3});
  for (int i = 0; i < 3; ++i) {
    const Fd stranger = net::connect_to(server->address(), soon());
    net::write_all(stranger.get(), bytes_of("GET / HTTP/1.1\r\n"), soon());
    EXPECT_TRUE(gets_closed(stranger.get()));
  }
  const Fd next = net::connect_to(server->address(), soon());
  EXPECT_TRUE(gets_closed(next.get())) << "the server must close it before any byte is sent";
  EXPECT_EQ(client_of(*server)->add("n", 1), 1) << "a rank retries";
}

TEST(TcpStoreTest, AClientThatDoesNotReadItsReplyDoesNotDelayOthers) {
  const auto server = serve();
  const auto client = client_of(*server);
  client->set("large", std::string(16 << 20, 'x'));
  const Fd lazy = proved_connection(*server);
  net::write_all(lazy.get(), bytes_of(net::frame_of(encode(TryGetRequest{"large"}))), soon());
  EXPECT_EQ(client->get("large", soon()).size(), std::size_t(16 << 20));
}

TEST(TcpStoreTest, TheServerForgetsAClientThatLeavesWhileItWaits) {
  const auto server = serve();
  {
    const Fd waiting = proved_connection(*server);
    const AwaitRequest request{{"never"}, Timeout::max()};
    net::write_all(waiting.get(), bytes_of(net::frame_of(encode(request))), soon());
    client_of(*server)->add("n", 1);  // after this the server has seen the waiting client
    EXPECT_FALSE(server->wait_until_all_have_left(milliseconds(20)));
  }
  EXPECT_TRUE(server->wait_until_all_have_left(std::chrono::minutes(5)));
}

TEST(TcpStoreTest, AKeyThatIsErasedDuringAWaitIsMissingAgain) {
  const auto server = serve();
  const auto client = client_of(*server);
  client->set("one", "1");
  auto waiting = std::async(std::launch::async, [&] {
    return error_of([&] { client->wait({"one", "two"}, Deadline::after(seconds(2))); });
  });
  EXPECT_EQ(waiting.wait_for(milliseconds(50)), std::future_status::timeout);
  client->erase("one");
  client->set("two", "2");
  const Error error = waiting.get();
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.what(), HasSubstr("\"one\""));
}

TEST(TcpStoreTest, AServerListensAtSeveralAddresses) {
  std::vector<Fd> listeners;
  listeners.push_back(loopback_listener());
  listeners.push_back(loopback_listener());
  const net::Address second = net::local_address(listeners[1].get());
  const TcpStoreServer server(std::move(listeners), kContext);
  client_of(server)->set("key", "value");
  EXPECT_EQ(connect_tcp_store({second}, kContext, seconds(20), soon())->try_get("key"), "value");
}

TEST(TcpStoreTest, AServerServesIPv6AndUnixSocketsToo) {
  std::vector<std::string> addresses = {net::unix_address("store").to_string(), "[::1]:0"};
  try {
    net::listen_on(net::Address::parse("[::1]:0"));
  } catch (const Error& error) {
    std::cout << "without IPv6, since this machine has no ::1: " << error.what() << "\n";
    addresses.pop_back();
  }
  for (const std::string& address : addresses) {
    const TcpStoreServer server(just(net::listen_on(net::Address::parse(address))), kContext);
    EXPECT_EQ(client_of(server)->add("n", 2), 2) << address;
  }
}

}  // namespace
}  // namespace peal::store
