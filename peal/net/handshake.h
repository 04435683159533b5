// What makes a fresh connection a stream between two ends that know each other: the proof of the
// job's secret (proof.h), and then what they were configured with, TLS perhaps. Used by transport
// for the links between ranks, and by the store's clients and server.
#pragma once

#include <memory>
#include <optional>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/fd.h"
#include "peal/net/encrypted_stream.h"
#include "peal/net/proof.h"
#include "peal/net/stream.h"

namespace peal::net {

struct Welcome {
  Hello other;
  std::unique_ptr<Stream> stream;
};

/// Any process of the machine can connect to a unix socket. Called before a byte is read, so that
/// other users' processes cost a listener nothing. On other sockets it does nothing.
/// Errors: usage (the process at the other end is another user's).
void check_neighbour(int fd);

/// Step by step, for a server that has many connections at once. Connections inside a host, over
/// unix sockets, are plain streams whatever the context says: nobody is in between, and processes
/// of other users are refused.
class Handshake {
 public:
  /// Errors: usage (TLS without a secret).
  Handshake(Fd fd, Role role, ProofContext context, const Hello& self);

  /// Goes on as far as the connection lets it without blocking. Returns the stream when it is made;
  /// then the handshake is over.
  /// Errors: as Proof::advance; usage also for another user's process on a unix socket; peer_lost
  /// also where TLS fails.
  std::optional<Welcome> advance();
  /// What to poll for before the next `advance`: POLLIN, POLLOUT.
  short interest() const;
  /// Whether the other end has proved the secret, so that only TLS is left.
  bool has_proof() const { return other_.has_value(); }
  /// What to say of the other end where the handshake is not over in time: a timeout.
  Error too_slow() const;
  int fd() const { return encrypted_ ? encrypted_->fd() : fd_.get(); }

 private:
  Fd fd_;
  Role role_;
  Sealing sealing_;
  Proof proof_;
  bool neighbour_is_known_ = false;  // as one of this user's
  std::optional<Hello> other_;       // proved
  std::unique_ptr<EncryptedStream> encrypted_;
};

/// All of it. Errors: as Handshake; timeout. Throws Interrupted.
Welcome shake_hands(Fd fd,
                    Role role,
                    const ProofContext& context,
                    const Hello& self,
                    Deadline deadline,
                    const Interrupt& interrupt = {});

}  // namespace peal::net
