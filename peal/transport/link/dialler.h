// The part of links.h that dials.
#pragma once

#include <cstddef>
#include <memory>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/net/address.h"
#include "peal/net/stream.h"
#include "peal/transport/link/links.h"

namespace peal::transport {

/// The acceptor sends this byte once it has recorded the connection. A dialler that has not read
/// the byte dials again.
inline constexpr std::byte kTaken{0x50};
/// The acceptor sends this byte if it does not expect the connection.
inline constexpr std::byte kUnexpected{0x51};

/// The context of a proof between the dialling rank and `acceptor`. It names the acceptor, because
/// two hosts may have the same address: a rank that answers there must not pass for another rank.
net::ProofContext context_of(const LinkPlan& plan, Rank acceptor);

/// Sets up a new connection at `address`, on both ends: no Nagle's delay on TCP, and the plan's
/// congestion control.
void set_up(const LinkPlan& plan, int fd, const net::Address& address);

/// Threads: one.
class Dialler {
 public:
  explicit Dialler(const LinkPlan& plan) : plan_(plan) {}

  /// Connects to a rank at the first of its addresses that leads to it.
  /// Errors: peer_lost (all addresses refuse), usage (no process there knows the secret or has the
  ///   plan's protection), mismatch (the rank does not expect this connection), timeout.
  std::unique_ptr<net::Stream> dial(const LinkKey& key, Deadline deadline);

 private:
  const LinkPlan& plan_;
  /// Which of the last rank's addresses led to it. Hosts are mostly alike, so this one is tried
  /// first. An address that leads nowhere costs the time of an attempt.
  std::size_t favourite_ = 0;
};

/// Whether no process listens at any of the addresses: then that rank has ended. False in doubt.
bool is_gone(const LinkPlan::Peer& peer, Deadline deadline);

/// `loss` of the peer `lost`, with the other peers that have left: `lost` may have ended only
/// because another peer did. Tries each peer once. A refusal takes at most a round trip. Cost: up
/// to 0.5 s if peers give no sign.
Error with_others_that_left(const Error& loss, Rank lost, const LinkPlan& plan, const Links& links);

}  // namespace peal::transport
