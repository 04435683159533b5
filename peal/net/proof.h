// Both ends of a new connection prove to each other that they know the job's secret. The proof
// comes before any other data. It is a challenge and response with HMAC-SHA256. So the secret is
// never sent, and a recorded proof cannot be used again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/link_protection.h"
#include "peal/base/secret.h"
#include "peal/net/socket.h"

namespace peal::net {

enum class Role : unsigned char { kConnector, kAcceptor };

/// A proof is bound to its context: a proof that was made for one context fails in any other.
struct ProofContext {
  Secret secret;        // the job's; if the user gave none it is empty, and nothing is proved
  std::string job;      // distinguishes jobs that share a secret
  std::string purpose;  // "store", or the group and the rank to connect to
  /// The protection of the data after the proof. Both ends must have the same setting.
  LinkProtection protection = LinkProtection::kPlain;
};

/// Errors: usage (TLS without a secret).
void check(const ProofContext& context);

/// What each end says about itself inside the proof.
struct Hello {
  std::int32_t rank = -1;  // -1: no rank, for example a client of a store
  friend bool operator==(const Hello&, const Hello&) = default;
};

/// One end of the proof on a fresh connection. The proof runs in steps, so that a server can run
/// many at once. It never reads a byte beyond the proof.
///   both:      greeting = magic, version, role, protection, hello, nonce
///   acceptor:  HMAC(secret, acceptor + what both greetings said + job + purpose)
///   connector: HMAC(secret, connector + the same)
/// Both ends detect a wrong proof, because the connector sends its MAC before it checks the
/// acceptor's. Both ends detect another protection, because each sends its greeting without waiting
/// for the other's.
/// Threads: one at a time.
/// Cost: one and a half round trips, 4 HMACs.
/// Source: RFC 2104 (HMAC); the exchange is ISO/IEC 9798-4 three-pass mutual authentication.
class Proof {
 public:
  /// Errors: usage (TLS without a secret).
  Proof(Role role, ProofContext context, const Hello& self);

  /// Continues without blocking. Returns the other end's hello once the proof is done.
  /// Errors: usage (the other end has another secret or another protection, or is not a peal
  ///   process; the error says which, and what to do); peer_lost.
  std::optional<Hello> advance(int fd);
  /// What to poll for before the next `advance`: POLLIN, POLLOUT.
  short interest() const;
  /// 32 bytes that only the two ends of this connection know, for TLS. To be called after the
  /// proof:
  ///   HMAC(secret, "peal/tls" + what both greetings said + job + purpose)
  /// The caller wipes the key.
  std::string key() const;

 private:
  bool flush(int fd);
  bool fill(int fd, std::size_t size);
  void check_beginning(int fd) const;
  void read_greeting(int fd);
  /// The contents of both greetings, the job and the purpose.
  std::string exchange() const;
  std::string mac_of(Role prover) const;

  enum class Stage : unsigned char { kGreeting, kOtherMac, kResult };

  Role role_;
  ProofContext context_;
  std::string own_nonce_;
  std::string other_nonce_;
  Hello self_;
  Hello other_;
  Stage stage_ = Stage::kGreeting;
  std::string out_;  // bytes still to send
  std::string in_;   // the received part of the current message
};

/// A fresh secret for a job: 32 random bytes in hexadecimal. Errors: resource.
Secret make_secret();

}  // namespace peal::net
