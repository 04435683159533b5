// Tests what TLS adds to a stream: a handshake, secrecy, and an alert about damaged data.
#include "peal/net/encrypted_stream.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "peal/base/error.h"
#include "peal/net/socket.h"
#include "peal/net/testing/wire.h"

namespace peal::net {
namespace {

using testing::HasSubstr;

/// Runs the handshake and returns the error of each end, if any.
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

TEST(EncryptedStreamTest, BytesThatComeWithTheEndOfTheHandshakeAreReportedAsReadAhead) {
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

TEST(EncryptedStreamTest, AnEndThatClosesDuringTheHandshakeIsALostPeer) {
  SocketPair pair = make_socket_pair();
  EncryptedStream connector(std::move(pair.a), Role::kConnector, kKey);
  EXPECT_FALSE(connector.try_handshake());
  pair.b.reset();
  try {
    connector.try_handshake();
    FAIL() << "the handshake succeeded without the other end";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  }
}

/// A server without the key that shows a self-made certificate, as an attacker in between would.
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

TEST(EncryptedStreamTest, AServerWithACertificateButNoKeyIsRejected) {
  SocketPair pair = make_socket_pair();
  EncryptedStream connector(std::move(pair.a), Role::kConnector, kKey);
  Impostor impostor(std::move(pair.b));
  EXPECT_FALSE(connector.try_handshake());
  impostor.go_on();
  EXPECT_TRUE(impostor.has_shown_itself());
  try {
    EXPECT_FALSE(connector.try_handshake());
    FAIL() << "the connector accepted a server that does not know the key";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
    EXPECT_THAT(error.what(), HasSubstr("certificate"));
  }
}

TEST(EncryptedStreamTest, SentDataCannotBeReadOnTheWire) {
  const Wire wire = make_wire(make_encrypted);
  write(*wire.sender, "the gradient of the loss");
  const std::string bytes = wire.take();
  EXPECT_GT(bytes.size(), 24U);
  EXPECT_EQ(bytes.find("gradient"), std::string::npos);
}

TEST(EncryptedStreamTest, TheSenderIsNotifiedOfDamagedData) {
  Wire wire = make_wire(make_encrypted);
  write(*wire.sender, "abc");
  std::string bytes = wire.take();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  wire.put(bytes);
  EXPECT_TRUE(read_all_there_is(*wire.receiver).error);
  relay(wire.to_receiver.get(), wire.from_sender.get());
  const ReadOutcome outcome = read_all_there_is(*wire.sender);
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->what(), HasSubstr("alert"));
  EXPECT_TRUE(write(*wire.sender, "more").closed);
}

}  // namespace
}  // namespace peal::net
