// The transport between processes: shared memory to the ranks of this host, TCP to the ranks of
// other hosts. It is made in two steps, so that the caller can publish in between where each rank
// listens (rendezvous/contact.h).
//
//   auto pending = transport::open(options);
//   rendezvous::publish(store, rank, pending->contact());
//   auto transport = pending->connect(rendezvous::collect(store, ranks, deadline), deadline);
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/link_protection.h"
#include "peal/base/report.h"
#include "peal/base/units.h"
#include "peal/config/config.h"
#include "peal/config/fault_plan.h"
#include "peal/net/address.h"
#include "peal/transport/link/contact.h"
#include "peal/transport/liveness/peer_monitor.h"
#include "peal/transport/shm/host_peers.h"
#include "peal/transport/shm/segment_layout.h"
#include "peal/transport/transport.h"

namespace peal::transport {

/// The same on all ranks of the group, except `rank`, `listen_on`, `congestion`, `peers` and
/// `report`.
struct ConnectOptions {
  Rank rank = 0;
  int size = 1;
  std::string group = "world";  // no other group of the job has this name
  /// The world ranks of the group's ranks, in order, for errors; empty if they are the same.
  std::vector<Rank> world_ranks = {};
  Secret secret = {};  // the job's, as in net::ProofContext
  std::string job = {};
  /// The protection of the bytes between hosts. TLS needs a secret.
  LinkProtection protection = LinkProtection::kPlain;
  TransportChoice choice = TransportChoice::kAuto;
  /// The addresses of this rank at which ranks of other hosts may connect, the preferred one first.
  /// Port 0 is any free port. The rank listens at no other address. May be empty if all ranks are
  /// on one host.
  std::vector<net::Address> listen_on = {};
  Bytes data_ring = SegmentLayout().data_ring;  // at most; many ranks get smaller ones
  Bytes mail_ring = SegmentLayout().mail_ring;
  Bytes stage = SegmentLayout().stage;
  /// Address space for the window memory of each rank; never more than the machine's memory.
  Bytes arena = 65536_MiB;
  /// A TCP congestion control that the system allows; empty: the system's choice.
  std::string congestion = {};
  /// Up to this number of ranks, the group makes all its links at its start. In a larger group, a
  /// link to a rank of another host is made when it is needed (linker.h).
  int linked_at_start = 16;
  /// The limits of the beats between ranks of different hosts (heartbeats.h).
  HeartbeatLimits heartbeat = {};
  /// Shared by this rank's groups, so that each group costs little. If null, the group makes a new
  /// one.
  std::shared_ptr<HostPeers> peers = nullptr;
  Report report = silent_report();
  /// The faults to inject between ranks of the group. These ranks must not share memory: faults
  /// apply only to the network.
  std::vector<LinkFault> faults = {};
};

/// A transport that already listens and is not connected yet.
/// Threads: one.
class PendingTransport {
 public:
  virtual ~PendingTransport() = default;

  /// What the other ranks must know.
  virtual const Contact& contact() const = 0;

  /// Connects to the ranks of this host and, in a small group, to all others (`linked_at_start`).
  /// In a larger group, the transport makes the other links when they are needed. Every rank calls
  /// it once.
  /// `contacts[r]` is the contact of rank r's pending transport, this rank's included.
  /// If it throws, the connections made so far stay open while this object lives. This gives the
  /// caller time to report the reason, because peers take a rank that closes its connections for
  /// the cause.
  /// Errors: each names the ranks concerned. peer_lost (a rank refuses or has ended), timeout (the
  ///   ranks that did not come), usage (a rank with another secret or protection; a rank that
  ///   listens nowhere; a fault between ranks that share memory), unsupported (shared memory is
  ///   requested, but ranks are on several hosts), mismatch (options that differ), resource.
  /// Cost: two round trips for each connection. A rank has one connection to each rank of this
  ///   host. To a rank of another host it has two, and a third to some of these ranks (watch.h). In
  ///   a large group, at first it has connections of two kinds to some of them only. Meanwhile it
  ///   uses up to 4 descriptors a rank. Afterwards a group keeps the connections to other hosts,
  ///   and one descriptor. The first group that two processes of a host have in common keeps 2
  ///   more.
  virtual std::unique_ptr<Transport> connect(std::span<const Contact> contacts,
                                             Deadline deadline) = 0;
};

/// Raises this process's limit of open files if the group needs that and the system allows it.
/// Errors: resource (an address that is taken or does not belong to this machine, too few open
///   files), usage (a congestion control that the system does not allow; a heartbeat limit that is
///   too short for the heartbeat).
std::unique_ptr<PendingTransport> open(const ConnectOptions& options);

}  // namespace peal::transport
