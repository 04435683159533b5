#include "peal/net/handshake.h"

#include <algorithm>
#include <array>
#include <future>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/base/testing/soon.h"
#include "peal/net/mac.h"
#include "peal/net/testing/unix_address.h"

namespace peal::net {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ProofContext context_of(LinkProtection protection, const std::string& secret = "hush") {
  return {Secret(secret), "job", "store", protection};
}

struct HandshakeOutcome {
  std::optional<Welcome> welcome;
  std::optional<Error> error;
};

HandshakeOutcome outcome_of(Fd fd, Role role, const ProofContext& context, Rank rank) {
  try {
    return {shake_hands(std::move(fd), role, context, {rank}, soon()), std::nullopt};
  } catch (const Error& error) {
    return {std::nullopt, error};
  }
}

/// Runs both ends over a connection to this address: {connector, acceptor}.
std::array<HandshakeOutcome, 2> run_both(const Address& address,
                                         const ProofContext& connector,
                                         const ProofContext& acceptor) {
  const Fd listener = listen_on(address);
  Fd fd = connect_to(local_address(listener.get()), soon());
  auto other = std::async(std::launch::async, [&] {
    return outcome_of(*accept_from(listener.get(), soon()), Role::kAcceptor, acceptor, 7);
  });
  HandshakeOutcome own = outcome_of(std::move(fd), Role::kConnector, connector, 3);
  return {std::move(own), other.get()};
}

const Address kLoopback = Address::parse("127.0.0.1:0");

std::string say(Stream& from, Stream& to, const std::string& text) {
  write_all(from, bytes_of(text), soon());
  std::string received(text.size(), '\0');
  read_all(to, std::as_writable_bytes(std::span(received)), soon());
  return received;
}

TEST(HandshakeTest, EndsWithTheSameProtectionCommunicate) {
  for (const LinkProtection protection : kAllLinkProtections) {
    const auto [connector, acceptor] =
        run_both(kLoopback, context_of(protection), context_of(protection));
    ASSERT_TRUE(connector.welcome) << connector.error->what();
    ASSERT_TRUE(acceptor.welcome) << acceptor.error->what();
    EXPECT_EQ(connector.welcome->other, Hello{7});
    EXPECT_EQ(acceptor.welcome->other, Hello{3});
    EXPECT_EQ(say(*connector.welcome->stream, *acceptor.welcome->stream, "ping"), "ping");
    EXPECT_EQ(say(*acceptor.welcome->stream, *connector.welcome->stream, "pong"), "pong");
  }
}

TEST(HandshakeTest, DifferentProtectionsAreAUsageErrorOnBothEndsThatNamesBoth) {
  for (const LinkProtection one : kAllLinkProtections) {
    for (const LinkProtection other : kAllLinkProtections) {
      if (one == other) continue;
      for (const HandshakeOutcome& outcome :
           run_both(kLoopback, context_of(one), context_of(other))) {
        ASSERT_TRUE(outcome.error);
        EXPECT_EQ(outcome.error->kind(), ErrorKind::kUsage);
        EXPECT_THAT(outcome.error->what(),
                    AllOf(HasSubstr(std::string(settings_of(one))),
                          HasSubstr(std::string(settings_of(other)))));
      }
    }
  }
}

TEST(HandshakeTest, InsideAHostStreamsArePlain) {
  const auto address = unix_address("handshake-test");
  const auto [connector, acceptor] = run_both(
      address, context_of(LinkProtection::kEncrypted), context_of(LinkProtection::kChecked));
  ASSERT_TRUE(connector.welcome) << connector.error->what();
  ASSERT_TRUE(acceptor.welcome) << acceptor.error->what();
  write_all(*connector.welcome->stream, bytes_of("as it is"), soon());
  std::array<std::byte, 8> bytes;
  read_all(acceptor.welcome->stream->fd(), bytes, soon());
  EXPECT_TRUE(std::ranges::equal(bytes, bytes_of("as it is")));
}

TEST(HandshakeTest, TlsWithoutASecretIsAUsageErrorThatAsksForOne) {
  for (const HandshakeOutcome& outcome : run_both(kLoopback,
                                                  context_of(LinkProtection::kEncrypted, ""),
                                                  context_of(LinkProtection::kEncrypted, ""))) {
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->kind(), ErrorKind::kUsage);
    EXPECT_THAT(outcome.error->what(), AllOf(HasSubstr("PEAL_TLS"), HasSubstr("PEAL_SECRET")));
  }
}

TEST(HandshakeTest, AnotherSecretIsAUsageErrorOnBothEndsForEveryProtection) {
  for (const LinkProtection protection : kAllLinkProtections) {
    for (const HandshakeOutcome& outcome :
         run_both(kLoopback, context_of(protection, "hush"), context_of(protection, "other"))) {
      ASSERT_TRUE(outcome.error);
      EXPECT_EQ(outcome.error->kind(), ErrorKind::kUsage);
      EXPECT_THAT(outcome.error->what(), HasSubstr("PEAL_SECRET"));
    }
  }
}

}  // namespace
}  // namespace peal::net
