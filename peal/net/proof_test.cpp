#include "peal/net/proof.h"

#include <array>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/base/testing/soon.h"
#include "peal/net/socket.h"
#include "peal/net/testing/prove.h"

namespace peal::net {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr std::size_t kGreeting = 48;  // bytes of a greeting
constexpr std::size_t kMac = 32;

struct ProofOutcome {
  Hello hello;
  std::optional<Error> error;
};

ProofOutcome outcome_of(
    int fd, Role role, const ProofContext& context, Hello self, Deadline deadline) {
  try {
    return {prove(fd, role, context, self, deadline), std::nullopt};
  } catch (const Error& error) {
    return {{}, error};
  }
}

/// Runs both ends of a proof, the acceptor on its own thread: {connector, acceptor}.
std::array<ProofOutcome, 2> run_both(const ProofContext& connector, const ProofContext& acceptor) {
  const SocketPair pair = make_socket_pair();
  auto other = std::async(std::launch::async, [&] {
    return outcome_of(pair.b.get(), Role::kAcceptor, acceptor, {7}, soon());
  });
  const ProofOutcome own = outcome_of(pair.a.get(), Role::kConnector, connector, {3}, soon());
  return {own, other.get()};
}

std::string read_text(int fd, std::size_t size) {
  std::string text(size, '\0');
  read_all(fd, std::as_writable_bytes(std::span(text)), soon());
  return text;
}

TEST(ProofTest, EndsWithTheSameContextLearnEachOthersRanks) {
  for (const char* secret : {"hush", ""}) {
    const ProofContext context{Secret(secret), "job", "store"};
    const auto [connector, acceptor] = run_both(context, context);
    ASSERT_FALSE(connector.error) << connector.error->what();
    ASSERT_FALSE(acceptor.error) << acceptor.error->what();
    EXPECT_EQ(connector.hello, Hello{7});
    EXPECT_EQ(acceptor.hello, Hello{3});
  }
}

TEST(ProofTest, AnyDifferenceInTheContextIsAUsageErrorOnBothEnds) {
  const ProofContext right{Secret("hush"), "job", "store"};
  for (const ProofContext& wrong : {ProofContext{Secret("other"), "job", "store"},
                                    ProofContext{Secret(""), "job", "store"},
                                    ProofContext{Secret("hush"), "other", "store"},
                                    ProofContext{Secret("hush"), "job", "world/data"},
                                    ProofContext{Secret("hush"), "jobs", "tore"}}) {
    for (const auto& outcomes : {run_both(right, wrong), run_both(wrong, right)}) {
      for (const ProofOutcome& outcome : outcomes) {
        ASSERT_TRUE(outcome.error);
        EXPECT_EQ(outcome.error->kind(), ErrorKind::kUsage);
        EXPECT_THAT(outcome.error->what(), HasSubstr("does not know this job's secret"));
      }
    }
  }
}

TEST(ProofTest, TheProofReadsNoByteBeyondItself) {
  const SocketPair pair = make_socket_pair();
  const ProofContext context{Secret("hush"), "job", "store"};
  auto other = std::async(std::launch::async, [&] {
    prove(pair.b.get(), Role::kConnector, context, {}, soon());
    write_all(pair.b.get(), bytes_of("next"), soon());
  });
  prove(pair.a.get(), Role::kAcceptor, context, {}, soon());
  other.get();
  EXPECT_EQ(read_text(pair.a.get(), 4), "next");
}

/// A connector's recorded messages.
struct Recording {
  std::string greeting;
  std::string mac;
};

Recording record_a_connector(const ProofContext& context) {
  const SocketPair left = make_socket_pair();   // connector - tap
  const SocketPair right = make_socket_pair();  // tap - acceptor
  auto connector = std::async(std::launch::async, [&] {
    return outcome_of(left.a.get(), Role::kConnector, context, {3}, soon());
  });
  auto acceptor = std::async(std::launch::async, [&] {
    return outcome_of(right.b.get(), Role::kAcceptor, context, {7}, soon());
  });
  Recording recording;
  recording.greeting = read_text(left.b.get(), kGreeting);
  write_all(right.a.get(), bytes_of(recording.greeting), soon());
  write_all(left.b.get(), bytes_of(read_text(right.a.get(), kGreeting + kMac)), soon());
  recording.mac = read_text(left.b.get(), kMac);
  write_all(right.a.get(), bytes_of(recording.mac), soon());
  EXPECT_FALSE(connector.get().error);
  EXPECT_FALSE(acceptor.get().error);
  return recording;
}

TEST(ProofTest, AReplayedProofIsRejected) {
  const ProofContext context{Secret("hush"), "job", "store"};
  const Recording recording = record_a_connector(context);
  const SocketPair pair = make_socket_pair();
  write_all(pair.a.get(), bytes_of(recording.greeting + recording.mac), soon());
  const ProofOutcome outcome = outcome_of(pair.b.get(), Role::kAcceptor, context, {7}, soon());
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->what(), HasSubstr("does not know this job's secret"));
}

TEST(ProofTest, AnEchoedGreetingIsRejected) {
  const ProofContext context{Secret("hush"), "job", "store"};
  const SocketPair pair = make_socket_pair();
  auto mirror = std::async(std::launch::async, [&] {
    write_all(pair.a.get(), bytes_of(read_text(pair.a.get(), kGreeting)), soon());
  });
  const ProofOutcome outcome = outcome_of(pair.b.get(), Role::kAcceptor, context, {7}, soon());
  mirror.get();
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind(), ErrorKind::kUsage);
}

TEST(ProofTest, AStrangerIsDetectedByItsFirstBytes) {
  const ProofContext context{Secret("hush"), "job", "store"};
  for (const char* greeting :
       {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "p", "peal/nat"}) {
    const SocketPair pair = make_socket_pair();
    write_all(pair.a.get(), bytes_of(greeting), soon());
    const bool shows = std::string_view(greeting) != "p";  // may still become a greeting
    const Deadline deadline = shows ? soon() : Deadline::after(milliseconds(10));
    const ProofOutcome outcome = outcome_of(pair.b.get(), Role::kAcceptor, context, {}, deadline);
    ASSERT_TRUE(outcome.error) << greeting;
    EXPECT_EQ(outcome.error->kind(), shows ? ErrorKind::kUsage : ErrorKind::kTimeout) << greeting;
    if (shows) {
      EXPECT_THAT(outcome.error->what(), HasSubstr("not a peal process")) << greeting;
    }
  }
}

TEST(ProofTest, AnotherVersionIsAnErrorAndBothGreetingsAreSent) {
  const ProofContext context{Secret("hush"), "job", "store"};
  const Recording recording = record_a_connector(context);
  std::string future = recording.greeting;
  future[8] = 9;  // the version follows the magic
  const SocketPair pair = make_socket_pair();
  write_all(pair.a.get(), bytes_of(future), soon());
  const ProofOutcome outcome = outcome_of(pair.b.get(), Role::kAcceptor, context, {}, soon());
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind(), ErrorKind::kUsage);
  EXPECT_THAT(outcome.error->what(), HasSubstr("version 9"));
  EXPECT_EQ(read_text(pair.a.get(), 8), "peal/net");  // the acceptor still sent its greeting
}

TEST(ProofTest, SilenceAfterHalfAProofIsATimeout) {
  const ProofContext context{Secret("hush"), "job", "store"};
  const Recording recording = record_a_connector(context);
  const std::string whole = recording.greeting + recording.mac;
  for (const std::size_t size : {std::size_t(0), kGreeting - 1, kGreeting, whole.size() - 1}) {
    const SocketPair pair = make_socket_pair();
    write_all(pair.a.get(), bytes_of(whole.substr(0, size)), soon());
    const ProofOutcome outcome =
        outcome_of(pair.b.get(), Role::kAcceptor, context, {}, Deadline::after(milliseconds(10)));
    ASSERT_TRUE(outcome.error) << size;
    EXPECT_EQ(outcome.error->kind(), ErrorKind::kTimeout) << size;
  }
}

TEST(ProofTest, AnEndThatClosesDuringTheProofIsALostPeer) {
  const ProofContext context{Secret("hush"), "job", "store"};
  SocketPair pair = make_socket_pair();
  write_all(pair.a.get(), bytes_of("peal/"), soon());
  pair.a.reset();
  const ProofOutcome outcome = outcome_of(pair.b.get(), Role::kAcceptor, context, {}, soon());
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind(), ErrorKind::kPeerLost);
}

TEST(ProofTest, AProtectionChangedByAnAttackerIsAWrongProof) {
  const ProofContext checked{Secret("hush"), "job", "store", LinkProtection::kChecked};
  const ProofContext encrypted{Secret("hush"), "job", "store", LinkProtection::kEncrypted};
  const SocketPair left = make_socket_pair();   // connector - attacker
  const SocketPair right = make_socket_pair();  // attacker - acceptor
  auto connector = std::async(std::launch::async, [&] {
    return outcome_of(left.a.get(), Role::kConnector, encrypted, {3}, soon());
  });
  auto acceptor = std::async(std::launch::async, [&] {
    return outcome_of(right.b.get(), Role::kAcceptor, checked, {7}, soon());
  });
  constexpr std::size_t kProtection = 11;  // after magic, version and role
  const auto pass_on = [&](int from, int to, LinkProtection protection) {
    std::string greeting = read_text(from, kGreeting);
    greeting[kProtection] = static_cast<char>(protection);
    write_all(to, bytes_of(greeting), soon());
  };
  pass_on(left.b.get(), right.a.get(), LinkProtection::kChecked);
  pass_on(right.a.get(), left.b.get(), LinkProtection::kEncrypted);
  write_all(left.b.get(), bytes_of(read_text(right.a.get(), kMac)), soon());
  write_all(right.a.get(), bytes_of(read_text(left.b.get(), kMac)), soon());
  for (const ProofOutcome& outcome : {connector.get(), acceptor.get()}) {
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->kind(), ErrorKind::kUsage);
  }
}

TEST(ProofTest, SecretsAreLongAndUnique) {
  const Secret secret = make_secret();
  EXPECT_EQ(secret.text().size(), 64u);
  EXPECT_EQ(secret.text().find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(make_secret(), secret);
}

}  // namespace
}  // namespace peal::net
