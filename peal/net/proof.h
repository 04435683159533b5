// Both ends of a new connection prove to each other that they know the job's secret, before
// anything else is said: challenge and response with HMAC-SHA256, so that the secret never travels
// and a recorded proof is worth nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/sealing.h"
#include "peal/base/secret.h"
#include "peal/net/socket.h"

namespace peal::net {

enum class Role : unsigned char { kConnector, kAcceptor };

/// What a proof is bound to; a proof made for one context is worthless in any other.
struct ProofContext {
  Secret secret;        // the job's; may be empty where the user gave none: then nothing is proved
  std::string job;      // distinguishes jobs that share a secret
  std::string purpose;  // "store", or the group and the rank that was dialled
  /// How what follows the proof is guarded; both ends are configured alike.
  Sealing sealing = Sealing::kPlain;
};

/// Errors: usage (TLS without a secret).
void check(const ProofContext& context);

/// What the ends say of themselves inside the proof.
struct Hello {
  std::int32_t rank = -1;  // -1: none, as a client of a store
  friend bool operator==(const Hello&, const Hello&) = default;
};

/// One end of the proof on a fresh connection, step by step, so that a server can have many at
/// once. Reads not a byte beyond it.
///   both:      greeting = magic, version, role, sealing, hello, nonce
///   acceptor:  HMAC(secret, acceptor + what both greetings said + job + purpose)
///   connector: HMAC(secret, connector + the same)
/// Both ends hear of a wrong proof, since the connector answers before it judges, and of another
/// sealing, since nobody waits for the other's greeting before it sends its own.
/// Cost: one round trip and a half, 4 HMACs. Source: RFC 2104 (HMAC); the exchange is ISO/IEC
/// 9798-4 three-pass mutual authentication.
class Proof {
 public:
  /// Errors: usage (TLS without a secret).
  Proof(Role role, ProofContext context, const Hello& self);

  /// Goes on as far as the connection lets it without blocking. Returns the other end's hello once
  /// it is proved; then the proof is over.
  /// Errors: usage when the other end knows another secret, has another sealing or is no peal at
  /// all (says which, and what to do); peer_lost.
  std::optional<Hello> advance(int fd);
  /// What to poll for before the next `advance`: POLLIN, POLLOUT.
  short interest() const;
  /// 32 bytes that only the two ends of this very connection know, for TLS. Once it is over:
  ///   HMAC(secret, "peal/tls" + what both greetings said + job + purpose)
  /// The caller wipes them.
  std::string key() const;

 private:
  bool flush(int fd);
  bool fill(int fd, std::size_t size);
  void check_beginning(int fd) const;
  void read_greeting(int fd);
  /// What both greetings said, job and purpose.
  std::string exchange() const;
  std::string mac_of(Role prover) const;

  enum class Stage : unsigned char { kGreeting, kOtherMac, kVerdict };

  Role role_;
  ProofContext context_;
  std::string own_nonce_;
  std::string other_nonce_;
  Hello self_;
  Hello other_;
  Stage stage_ = Stage::kGreeting;
  std::string out_;  // what is still to be sent
  std::string in_;   // what has come of the message that is being received
};

/// A fresh secret for a job: 32 random bytes in hexadecimal. Errors: resource.
Secret make_secret();

}  // namespace peal::net
