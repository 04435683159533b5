// Turns a fresh connection into a stream between two authenticated ends. First both ends prove the
// job's secret (proof.h). Then they start the configured protection, for example TLS. Used by
// transport for the links between ranks, and by the store's clients and server.
#pragma once

#include <memory>
#include <optional>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/net/encrypted_stream.h"
#include "peal/net/proof.h"
#include "peal/net/stream.h"
#include "peal/system/fd.h"

namespace peal::net {

struct Welcome {
  Hello other;
  std::unique_ptr<Stream> stream;
};

/// Checks the user at the other end of a unix socket, since any process of the machine can connect
/// to such a socket. To be called before any byte is read, so that other users' processes cost a
/// listener nothing. Does nothing on other sockets.
/// Errors: usage (the process at the other end belongs to another user).
void check_neighbour(int fd);

/// The handshake in steps, for a server that has many connections at once. Unix sockets inside a
/// host always become plain streams, whatever the context says: no third party is in between, and
/// processes of other users are rejected.
/// Threads: one at a time.
class Handshake {
 public:
  /// Errors: usage (TLS without a secret).
  Handshake(Fd fd, Role role, ProofContext context, const Hello& self);

  /// Continues without blocking. Returns the stream when the handshake is done.
  /// Errors: as Proof::advance; usage also for another user's process on a unix socket; peer_lost
  /// also if TLS fails.
  std::optional<Welcome> advance();
  /// What to poll for before the next `advance`: POLLIN, POLLOUT.
  short interest() const;
  /// Whether the other end has proved the secret, so that only TLS is left.
  bool has_proof() const { return other_.has_value(); }
  /// The timeout error for a handshake that is not done in time.
  Error too_slow() const;
  int fd() const { return encrypted_ ? encrypted_->fd() : fd_.get(); }

 private:
  Fd fd_;
  Role role_;
  LinkProtection protection_;
  Proof proof_;
  bool neighbour_is_known_ = false;  // whether the user at the other end was checked
  std::optional<Hello> other_;       // set once the proof is done
  std::unique_ptr<EncryptedStream> encrypted_;
};

/// Runs the whole handshake. Errors: as Handshake; timeout. Throws Interrupted.
Welcome shake_hands(Fd fd,
                    Role role,
                    const ProofContext& context,
                    const Hello& self,
                    Deadline deadline,
                    const Interrupt& interrupt = {});

}  // namespace peal::net
