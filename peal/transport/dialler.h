// The dialling half of links.h.
#pragma once

#include "peal/base/clock.h"
#include "peal/base/fd.h"
#include "peal/transport/links.h"

namespace peal::transport {

/// The byte by which an acceptor says that it has taken a connection into its books. Whoever
/// dialled and has not read it does not have the connection, and dials again.
inline constexpr std::byte kTaken{0x50};

/// What a proof between the dialling rank and `acceptor` is bound to, so that one who answers at an
/// address that two hosts have in common is not taken for another.
net::ProofContext context_of(const LinkPlan& plan, Rank acceptor);

/// Connects to a rank, by whichever of its addresses leads to it.
/// Errors: peer_lost when all refuse, usage when nobody there knows the secret, timeout.
Fd dial(const LinkPlan& plan, const LinkKey& key, Deadline deadline);

/// Whether nobody listens at any of the addresses: that rank has ended. In doubt, no.
bool is_gone(const LinkPlan::Peer& peer, Deadline deadline);

}  // namespace peal::transport
