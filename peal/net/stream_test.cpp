// What every stream promises, run against each kind; and what those promise that guard their bytes.
#include "peal/net/stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "peal/base/error.h"
#include "peal/base/testing/soon.h"
#include "peal/net/checked_stream.h"
#include "peal/net/encrypted_stream.h"
#include "peal/net/framing.h"
#include "peal/net/plain_stream.h"
#include "peal/net/testing/socket_pair.h"

namespace peal::net {
namespace {

using testing::HasSubstr;

const std::string kKey(32, 'k');

/// To the few kilobytes that the system gives at least.
void shrink_buffer(int fd) {
  const int least = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
}

/// Moves what has come at one descriptor to another.
void relay(int from, int to) {
  std::array<std::byte, 4096> bytes;
  while (true) {
    const Moved moved = try_read(from, bytes);
    if (moved.bytes == 0_B) return;
    write_all(to, std::span(bytes).first(static_cast<std::size_t>(moved.bytes.value)), soon());
  }
}

using StreamPtr = std::unique_ptr<Stream>;

/// Two streams with a wire between them that the test holds in its hands.
struct Wire {
  StreamPtr sender;
  Fd from_sender;
  Fd to_receiver;
  StreamPtr receiver;

  /// What the sender has put on the wire meanwhile.
  std::string take() const {
    std::string taken;
    std::array<char, 4096> bytes;
    while (true) {
      const Moved moved = try_read(from_sender.get(), std::as_writable_bytes(std::span(bytes)));
      if (moved.bytes == 0_B) return taken;
      taken.append(bytes.data(), static_cast<std::size_t>(moved.bytes.value));
    }
  }

  void put(std::string_view bytes) const { write_all(to_receiver.get(), bytes_of(bytes), soon()); }
};

struct Kind {
  std::string name;
  std::function<StreamPtr(Fd, Role)> make;
  bool guards = true;
};

StreamPtr make_encrypted(Fd fd, Role role) {
  constexpr std::uint64_t kFew = 5;  // so that keys change in every test
  return std::make_unique<EncryptedStream>(std::move(fd), role, kKey, kFew);
}

std::vector<Kind> all_kinds() {
  return {
      {"plain", [](Fd fd, Role) { return std::make_unique<PlainStream>(std::move(fd)); }, false},
      {"checked", [](Fd fd, Role) { return std::make_unique<CheckedStream>(std::move(fd)); }},
      {"encrypted", make_encrypted},
  };
}

std::vector<Kind> guarding_kinds() {
  std::vector<Kind> kinds = all_kinds();
  std::erase_if(kinds, [](const Kind& kind) { return !kind.guards; });
  return kinds;
}

Wire make_wire(const Kind& kind) {
  SocketPair left = make_socket_pair();
  SocketPair right = make_socket_pair();
  Wire wire{kind.make(std::move(left.a), Role::kConnector),
            std::move(left.b),
            std::move(right.a),
            kind.make(std::move(right.b), Role::kAcceptor)};
  auto* const connector = dynamic_cast<EncryptedStream*>(wire.sender.get());
  auto* const acceptor = dynamic_cast<EncryptedStream*>(wire.receiver.get());
  for (bool done = connector == nullptr; !done;) {
    const bool one = connector->try_handshake();
    relay(wire.from_sender.get(), wire.to_receiver.get());
    const bool other = acceptor->try_handshake();
    relay(wire.to_receiver.get(), wire.from_sender.get());
    done = one && other;
  }
  return wire;
}

/// Two streams that are connected.
std::pair<StreamPtr, StreamPtr> make_streams(const Kind& kind) {
  SocketPair pair = make_socket_pair();
  auto a = kind.make(std::move(pair.a), Role::kConnector);
  auto b = kind.make(std::move(pair.b), Role::kAcceptor);
  auto* const connector = dynamic_cast<EncryptedStream*>(a.get());
  auto* const acceptor = dynamic_cast<EncryptedStream*>(b.get());
  for (bool done = connector == nullptr; !done;) {
    const bool one = connector->try_handshake();
    const bool other = acceptor->try_handshake();
    done = one && other;
  }
  return {std::move(a), std::move(b)};
}

std::string random_text(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 1;
  for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

Moved write(Stream& stream, std::string_view text) {
  const std::array pieces = {bytes_of(text)};
  return stream.try_write(pieces);
}

/// What can be read now, and what came of it.
struct ReadOutcome {
  std::string text;
  bool closed = false;
  std::optional<Error> error;
};

ReadOutcome read_all_there_is(Stream& stream, std::size_t step = 4096) {
  ReadOutcome outcome;
  std::string bytes(step, '\0');
  try {
    while (true) {
      const Moved moved = stream.try_read(std::as_writable_bytes(std::span(bytes)));
      outcome.text += bytes.substr(0, static_cast<std::size_t>(moved.bytes.value));
      outcome.closed = moved.closed;
      if (moved.closed) return outcome;
      pollfd entry{stream.fd(), POLLIN, 0};
      const bool more = stream.has_read_ahead() || poll_until({&entry, 1}, Deadline(Clock::now()));
      if (moved.bytes == 0_B && !more) return outcome;
    }
  } catch (const Error& error) {
    outcome.error = error;
    return outcome;
  }
}

class StreamTest : public testing::TestWithParam<Kind> {};
class GuardedStreamTest : public testing::TestWithParam<Kind> {};

std::string name_of_kind(const testing::TestParamInfo<Kind>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(All, StreamTest, testing::ValuesIn(all_kinds()), name_of_kind);
INSTANTIATE_TEST_SUITE_P(Guarding,
                         GuardedStreamTest,
                         testing::ValuesIn(guarding_kinds()),
                         name_of_kind);

TEST_P(StreamTest, AnyAmountArrivesInAnyPiecesThroughAnyBuffer) {
  constexpr std::size_t kRecord = 64 << 10;
  std::mt19937 random(11);
  for (const std::size_t size : {std::size_t{1},
                                 std::size_t{12},
                                 kRecord / 4 - 1,
                                 kRecord / 4,
                                 kRecord / 4 + 1,
                                 kRecord - 1,
                                 kRecord,
                                 kRecord + 1,
                                 2 * kRecord,
                                 5 * kRecord + 17}) {
    for (const bool small : {false, true}) {
      auto [a, b] = make_streams(GetParam());
      if (small) shrink_buffer(a->fd());
      const std::string sent = random_text(size);
      std::string received;
      std::size_t done = 0;
      while (received.size() < size) {
        const std::string_view rest = std::string_view(sent).substr(done);
        const std::size_t first = std::min<std::size_t>(rest.size(), random() % 9000);
        const std::size_t second = random() % (rest.size() - first + 1);
        const std::vector<std::span<const std::byte>> pieces = {
            bytes_of(rest.substr(0, first)), {}, bytes_of(rest.substr(first, second))};
        const Moved moved = a->try_write(pieces);
        ASSERT_FALSE(moved.closed);
        ASSERT_EQ(moved.held, a->has_unsent());
        done += static_cast<std::size_t>(moved.bytes.value);
        const ReadOutcome outcome = read_all_there_is(*b, 1 + random() % 30'000);
        ASSERT_FALSE(outcome.error) << outcome.error->what();
        received += outcome.text;
      }
      EXPECT_EQ(received, sent) << size;
      EXPECT_TRUE(a->try_flush());
      EXPECT_FALSE(b->has_read_ahead());
    }
  }
}

TEST_P(StreamTest, BothDirectionsMoveAtOnce) {
  auto [a, b] = make_streams(GetParam());
  for (int i = 0; i < 50; ++i) {
    const std::string there = random_text(static_cast<std::size_t>(1 + i * 37));
    const std::string back = random_text(static_cast<std::size_t>(2000 - i * 37));
    write(*a, there);
    write(*b, back);
    EXPECT_EQ(read_all_there_is(*b).text, there);
    EXPECT_EQ(read_all_there_is(*a).text, back);
  }
}

TEST_P(StreamTest, WhatIsHeldLeavesByFlushingAlone) {
  auto [a, b] = make_streams(GetParam());
  shrink_buffer(a->fd());
  const std::string text = random_text(1 << 20);
  const Moved moved = write(*a, text);
  const auto taken = static_cast<std::size_t>(moved.bytes.value);
  ASSERT_GT(taken, 0U);
  ASSERT_LT(taken, text.size());
  EXPECT_GT(a->unacknowledged(), 0_B);
  std::string received;
  while (!a->try_flush()) received += read_all_there_is(*b).text;
  EXPECT_FALSE(a->has_unsent());
  received += read_all_there_is(*b).text;
  EXPECT_EQ(received, text.substr(0, taken));
}

TEST_P(StreamTest, WhatPollDoesNotShowIsSaidToBeReadAhead) {
  auto [a, b] = make_streams(GetParam());
  for (const char* text : {"one", "two", "three"}) write(*a, text);
  std::array<std::byte, 2> some;
  EXPECT_EQ(b->try_read(some).bytes, 2_B);
  pollfd entry{b->fd(), POLLIN, 0};
  EXPECT_TRUE(b->has_read_ahead() || poll_until({&entry, 1}, Deadline(Clock::now())));
  EXPECT_EQ(read_all_there_is(*b).text, "etwothree");
  EXPECT_FALSE(b->has_read_ahead());
}

bool is_readable(const Stream& stream) {
  pollfd entry{stream.fd(), POLLIN, 0};
  return poll_until({&entry, 1}, Deadline(Clock::now()));
}

/// A thread that sleeps in poll(2) until there is data to read depends on this.
TEST_P(StreamTest, WithoutAnEventNothingIsReadUnlessItIsSaidToBeReadAhead) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t bound) { return random() % bound; };
    auto [a, b] = make_streams(GetParam());
    if (seed % 2 == 0) shrink_buffer(a->fd());
    const std::string text = random_text(100'000);
    std::vector<std::byte> room(40'000);
    for (int step = 0; step < 300; ++step) {
      switch (below(3)) {
        case 0:
          write(*a, std::string_view(text).substr(0, 1 + below(step % 5 == 0 ? text.size() : 500)));
          break;
        case 1:
          a->try_flush();
          break;
        default:
          b->try_read(std::span(room).first(1 + below(step % 7 == 0 ? room.size() : 300)));
      }
      if (!a->has_unsent()) {
        ASSERT_TRUE(a->try_flush());
      }
      if (is_readable(*b) || b->has_read_ahead()) continue;
      ASSERT_EQ(b->try_read(room).bytes, 0_B) << "seed " << seed << ", step " << step;
    }
  }
}

TEST(EncryptedStreamTest, WhatComesWithTheLastOfTheHandshakeIsSaidToBeReadAhead) {
  SocketPair pair = make_socket_pair();
  EncryptedStream connector(std::move(pair.a), Role::kConnector, kKey);
  EncryptedStream acceptor(std::move(pair.b), Role::kAcceptor, kKey);
  EXPECT_FALSE(connector.try_handshake());
  EXPECT_FALSE(acceptor.try_handshake());
  ASSERT_TRUE(connector.try_handshake());
  write(connector, "first");
  ASSERT_TRUE(acceptor.try_handshake());
  EXPECT_FALSE(is_readable(acceptor));
  EXPECT_TRUE(acceptor.has_read_ahead());
  EXPECT_EQ(read_all_there_is(acceptor).text, "first");
  EXPECT_FALSE(acceptor.has_read_ahead());
}

TEST_P(StreamTest, AnEndComesAfterAllThatWasSent) {
  auto [a, b] = make_streams(GetParam());
  write(*a, "last words");
  hang_up(*a);
  a.reset();
  const ReadOutcome outcome = read_all_there_is(*b, 3);
  EXPECT_EQ(outcome.text, "last words");
  EXPECT_TRUE(outcome.closed);
  bool closed = false;
  for (int i = 0; i < 10 && !closed; ++i) closed = write(*b, "anybody?").closed;
  EXPECT_TRUE(closed);
  EXPECT_TRUE(b->try_flush());
}

TEST_P(StreamTest, ReadingAndWritingAllWaitAsTheyMust) {
  auto [a, b] = make_streams(GetParam());
  shrink_buffer(a->fd());
  const std::string text = random_text(300'000);
  auto writing = std::async(std::launch::async,
                            [&, &stream = *a] { write_all(stream, bytes_of(text), soon()); });
  std::string received(text.size(), '\0');
  read_all(*b, std::as_writable_bytes(std::span(received)), soon());
  writing.get();
  EXPECT_EQ(received, text);
  EXPECT_THROW(read_all(*b,
                        std::as_writable_bytes(std::span(received)),
                        Deadline::after(std::chrono::milliseconds(5))),
               Error);
}

// ---- what is done to the bytes on their way

/// Three records, and what they carry.
const std::array<std::string, 3> kTexts = {random_text(40), random_text(7), random_text(100)};

std::array<std::string, 3> send_three(const Wire& wire) {
  std::array<std::string, 3> records;
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    write(*wire.sender, kTexts[i]);
    records[i] = wire.take();
  }
  return records;
}

TEST_P(GuardedStreamTest, AByteThatIsChangedAnywhereIsNeverTaken) {
  std::size_t size = 1;
  for (std::size_t at = 0; at < size; ++at) {
    Wire wire = make_wire(GetParam());
    const std::array<std::string, 3> records = send_three(wire);
    std::string bytes = records[0] + records[1] + records[2];
    size = bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    wire.put(bytes);
    std::string whole;  // what comes before the record that was changed
    for (std::size_t i = 0, end = 0; i < records.size(); ++i) {
      if ((end += records[i].size()) <= at) whole += kTexts[i];
    }
    ReadOutcome outcome = read_all_there_is(*wire.receiver);
    if (!outcome.error) {  // it waits for the rest of a record that was made longer
      wire.to_receiver.reset();
      const ReadOutcome rest = read_all_there_is(*wire.receiver);
      EXPECT_TRUE(rest.error || rest.closed) << at;
      outcome.text += rest.text;
    } else {
      EXPECT_EQ(outcome.error->kind(), ErrorKind::kPeerLost);
      EXPECT_TRUE(read_all_there_is(*wire.receiver).error) << "ever after";
    }
    EXPECT_EQ(outcome.text, whole) << at;
  }
}

TEST_P(GuardedStreamTest, AStreamThatIsCutAnywhereEndsWithAWholeRecord) {
  std::size_t size = 1;
  for (std::size_t cut = 0; cut < size; ++cut) {
    Wire wire = make_wire(GetParam());
    const std::array<std::string, 3> records = send_three(wire);
    const std::string bytes = records[0] + records[1] + records[2];
    size = bytes.size();
    wire.put(bytes.substr(0, cut));
    wire.to_receiver.reset();
    std::string whole;
    for (std::size_t i = 0, end = 0; i < records.size(); ++i) {
      if ((end += records[i].size()) <= cut) whole += kTexts[i];
    }
    const ReadOutcome outcome = read_all_there_is(*wire.receiver);
    EXPECT_EQ(outcome.text, whole) << cut;
    EXPECT_TRUE(outcome.closed || outcome.error) << cut;
  }
}

TEST_P(GuardedStreamTest, ARecordThatComesTwiceOrOutOfItsPlaceIsNeverTaken) {
  struct Case {
    std::vector<std::size_t> order;
    std::size_t right = 0;  // so many at the beginning
  };
  for (const Case& test : {Case{{0, 0}, 1}, Case{{0, 1, 0}, 2}, Case{{1}, 0}, Case{{0, 2}, 1}}) {
    Wire wire = make_wire(GetParam());
    const std::array<std::string, 3> records = send_three(wire);
    std::string right;
    for (std::size_t i = 0; i < test.order.size(); ++i) {
      wire.put(records.at(test.order[i]));
      if (i < test.right) right += kTexts.at(test.order[i]);
    }
    const ReadOutcome outcome = read_all_there_is(*wire.receiver);
    EXPECT_EQ(outcome.text, right);
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->kind(), ErrorKind::kPeerLost);
  }
}

// ---- TLS

/// The error of each end, where there is one.
std::array<std::optional<Error>, 2> handshake(EncryptedStream& connector,
                                              EncryptedStream& acceptor) {
  std::array<std::optional<Error>, 2> errors;
  const auto go_on = [](EncryptedStream& stream, std::optional<Error>& error) {
    try {
      return error || stream.try_handshake();
    } catch (const Error& caught) {
      error = caught;
      return true;
    }
  };
  for (int i = 0; i < 10; ++i) {
    go_on(connector, errors[0]);
    go_on(acceptor, errors[1]);
  }
  return errors;
}

TEST(EncryptedStreamTest, AnotherKeyIsAnErrorOnBothEnds) {
  SocketPair pair = make_socket_pair();
  EncryptedStream connector(std::move(pair.a), Role::kConnector, kKey);
  EncryptedStream acceptor(std::move(pair.b), Role::kAcceptor, std::string(32, 'x'));
  for (const auto& error : handshake(connector, acceptor)) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::kPeerLost);
    EXPECT_THAT(error->what(), HasSubstr("TLS handshake"));
  }
}

TEST(EncryptedStreamTest, AnEndThatLeavesInTheHandshakeIsLost) {
  SocketPair pair = make_socket_pair();
  EncryptedStream connector(std::move(pair.a), Role::kConnector, kKey);
  EXPECT_FALSE(connector.try_handshake());
  pair.b.reset();
  try {
    connector.try_handshake();
    FAIL() << "nobody was there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  }
}

/// A server that knows no key and shows a certificate of its own making, as one in between would.
class Impostor {
 public:
  explicit Impostor(Fd fd) : fd_(std::move(fd)), context_(SSL_CTX_new(TLS_method()), SSL_CTX_free) {
    const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    const std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), X509_free);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key.get());
    X509_sign(certificate.get(), key.get(), EVP_sha256());
    SSL_CTX_use_certificate(context_.get(), certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), key.get());
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), fd_.get());
    SSL_set_accept_state(ssl_.get());
  }

  void go_on() { SSL_do_handshake(ssl_.get()); }
  bool has_shown_itself() const { return SSL_get_state(ssl_.get()) > TLS_ST_SW_CERT; }

 private:
  Fd fd_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_{nullptr, SSL_free};
};

TEST(EncryptedStreamTest, ACertificateIsNoSubstituteForTheKey) {
  SocketPair pair = make_socket_pair();
  EncryptedStream connector(std::move(pair.a), Role::kConnector, kKey);
  Impostor impostor(std::move(pair.b));
  EXPECT_FALSE(connector.try_handshake());
  impostor.go_on();
  EXPECT_TRUE(impostor.has_shown_itself());
  try {
    EXPECT_FALSE(connector.try_handshake());
    FAIL() << "it was taken for somebody who knows the key";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
    EXPECT_THAT(error.what(), HasSubstr("certificate"));
  }
}

TEST(EncryptedStreamTest, WhatIsSentCannotBeReadOnTheWire) {
  const Wire wire = make_wire(guarding_kinds().at(1));
  write(*wire.sender, "the gradient of the loss");
  const std::string bytes = wire.take();
  EXPECT_GT(bytes.size(), 24U);
  EXPECT_EQ(bytes.find("gradient"), std::string::npos);
}

TEST(EncryptedStreamTest, WhoeverSendsHearsThatItWasDamaged) {
  Wire wire = make_wire(guarding_kinds().at(1));
  write(*wire.sender, "abc");
  std::string bytes = wire.take();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  wire.put(bytes);
  EXPECT_TRUE(read_all_there_is(*wire.receiver).error);
  relay(wire.to_receiver.get(), wire.from_sender.get());
  const ReadOutcome heard = read_all_there_is(*wire.sender);
  ASSERT_TRUE(heard.error);
  EXPECT_THAT(heard.error->what(), HasSubstr("alert"));
  EXPECT_TRUE(write(*wire.sender, "more").closed);
}

}  // namespace
}  // namespace peal::net
