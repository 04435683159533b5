// Makes the connections between one rank and the others of its group. The rank dials the ranks
// before it, accepts the ranks after it, and rejects every connection that does not prove the job's
// secret. Used by connect.cpp.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/report.h"
#include "peal/base/units.h"
#include "peal/net/address.h"
#include "peal/net/proof.h"
#include "peal/net/stream.h"

namespace peal::transport {

/// The purpose of a connection. The numbers are part of the wire format.
enum class LinkKind : std::uint8_t { kData = 0, kMail = 1, kHost = 2, kBeats = 3 };

struct LinkKey {
  Rank peer = 0;
  LinkKind kind = LinkKind::kData;
  friend auto operator<=>(const LinkKey&, const LinkKey&) = default;
};

struct LinkPlan {
  struct Peer {
    std::string name;  // for messages: "rank 3 (pid 77 on host b)"
    std::vector<net::Address> addresses;
    std::vector<LinkKind> kinds;  // which connections to make
    /// Those that are made when they are needed (linker.h).
    std::vector<LinkKind> later_kinds = {};
  };

  Rank self = 0;
  std::string group;
  net::ProofContext context;  // secret, job and protection
  std::map<Rank, Peer> peers;
  std::vector<int> listeners;   // borrowed
  std::string congestion = {};  // as ConnectOptions
  Report report = silent_report();
};

using Links = std::map<LinkKey, std::unique_ptr<net::Stream>>;

/// The connections of one kind, by peer.
std::map<Rank, std::unique_ptr<net::Stream>> take(Links& links, LinkKind kind);

/// Adds all connections of the plan to `links`, those over TCP without Nagle's delay. Every rank of
/// the group calls it at about the same time. If it throws, the connections made so far stay open,
/// because closing them would tell peers that this rank has left. Strangers are reported and
/// dropped (net/accept_limiter.h).
/// Errors: each names the ranks concerned and the attempts. peer_lost (refused, or ended
///   meanwhile), timeout, usage (another secret or protection), mismatch (another peal), resource.
/// Cost: two round trips for each connection. The ranks before this one are dialled one after the
///   other.
void make_links(const LinkPlan& plan, Links& links, Deadline deadline);

}  // namespace peal::transport
