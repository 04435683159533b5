// The part of links.h that dials, and waits.
#pragma once

#include <cstddef>
#include <memory>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/net/stream.h"
#include "peal/transport/link/links.h"

namespace peal::transport {

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
