// The dialling half of links.h.
#pragma once

#include <cstddef>
#include <memory>

#include "peal/base/clock.h"
#include "peal/net/address.h"
#include "peal/net/stream.h"
#include "peal/transport/links.h"

namespace peal::transport {

/// The byte by which an acceptor says that it has taken a connection into its books. Whoever
/// dialled and has not read it does not have the connection, and dials again.
inline constexpr std::byte kTaken{0x50};
/// The byte by which it says that it expects no such connection.
inline constexpr std::byte kUnexpected{0x51};

/// What a proof between the dialling rank and `acceptor` is bound to, so that one who answers at an
/// address that two hosts have in common is not taken for another.
net::ProofContext context_of(const LinkPlan& plan, Rank acceptor);

/// What each end does to a new connection at `address`: no Nagle's delay on TCP, and the plan's
/// congestion control.
void set_up(const LinkPlan& plan, int fd, const net::Address& address);

class Dialler {
 public:
  explicit Dialler(const LinkPlan& plan) : plan_(plan) {}

  /// Connects to a rank, by whichever of its addresses leads to it.
  /// Errors: peer_lost when all refuse, usage when nobody there knows the secret or has the plan's
  /// sealing, mismatch when the rank expects no such connection, timeout.
  std::unique_ptr<net::Stream> dial(const LinkKey& key, Deadline deadline);

 private:
  const LinkPlan& plan_;
  /// Which of the last rank's addresses led to it. Hosts are mostly alike, so that this one is the
  /// best to begin with: one that leads nowhere costs an attempt's time.
  std::size_t favourite_ = 0;
};

/// Whether nobody listens at any of the addresses: that rank has ended. In doubt, no.
bool is_gone(const LinkPlan::Peer& peer, Deadline deadline);

}  // namespace peal::transport
