// The transport between processes: shared memory to the ranks of the own host, TCP to those of
// others. Made in two steps, so that whoever wires the job up can publish in between where each
// rank listens (rendezvous/contact.h).
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
#include "peal/base/config.h"
#include "peal/base/fault_plan.h"
#include "peal/base/report.h"
#include "peal/base/sealing.h"
#include "peal/base/units.h"
#include "peal/net/address.h"
#include "peal/transport/contact.h"
#include "peal/transport/pulse.h"
#include "peal/transport/segment_layout.h"
#include "peal/transport/shm/host_peers.h"
#include "peal/transport/transport.h"

namespace peal::transport {

/// The same on all ranks of the group, but for `rank`, `listen_on`, `congestion` and `report`.
struct ConnectOptions {
  Rank rank = 0;
  int size = 1;
  std::string group = "world";  // no other group of the job has this name
  Secret secret = {};           // the job's, as net::ProofContext has it
  std::string job = {};
  /// Of what goes between hosts; TLS needs a secret.
  Sealing sealing = Sealing::kPlain;
  TransportChoice choice = TransportChoice::kAuto;
  /// The own addresses at which ranks of other hosts may connect, the preferred one first; port 0
  /// is any free one. Nothing listens anywhere else. May be empty if all ranks are on one host.
  std::vector<net::Address> listen_on = {};
  Bytes data_ring = SegmentLayout().data_ring;  // at most; many ranks get smaller ones
  Bytes mail_ring = SegmentLayout().mail_ring;
  Bytes stage = SegmentLayout().stage;
  /// Address space for each rank's window memory; never more than the machine has memory.
  Bytes arena = 65536_MiB;
  /// TCP's congestion control, one that the system allows; empty: the system's choice.
  std::string congestion = {};
  /// Of the beats that ranks of different hosts exchange (heartbeats.h).
  PulseLimits pulse = {};
  /// Shared by this rank's groups, so that each costs little. If null, the group makes its own.
  std::shared_ptr<HostPeers> peers = nullptr;
  Report report = silent_report();
  /// What is to go wrong between ranks of the group, which must not share memory: nothing is put
  /// between them there.
  std::vector<LinkFault> faults = {};
};

/// A transport that listens already and is not connected yet.
class Pending {
 public:
  virtual ~Pending() = default;

  /// What the others have to know.
  virtual const Contact& contact() const = 0;

  /// Connects to all ranks and listens no more. Every rank calls it; once.
  /// `contacts[r]` is what rank r's pending transport said, the own one included.
  /// Should it throw, the connections that were made stay open for as long as this lives: time to
  /// say why, since others hold whoever closes them for the cause.
  /// Errors, which name the ranks concerned: peer_lost (a rank refuses or has ended), timeout (who
  /// did not come), usage (a rank with another secret or sealing; one that listens nowhere; a fault
  /// between ranks that share memory),
  /// unsupported (shared memory asked for where ranks are on several hosts), mismatch (options that
  /// differ), resource.
  /// Cost: two round trips for each connection. There are two connections to each rank of another
  /// host, a third to some of these ranks (watch.h), and one to each rank of this host. Meanwhile
  /// up to 4 descriptors a rank. Afterwards a group keeps the connections to other hosts, and one
  /// descriptor. The first group that two processes of a host have in common keeps 2 more.
  virtual std::unique_ptr<Transport> connect(std::span<const Contact> contacts,
                                             Deadline deadline) = 0;
};

/// Raises this process's limit of open files if the group needs that and the system allows it.
/// Errors: resource (an address that is taken or not the machine's own, too few open files), usage
/// (a congestion control that the system does not allow).
std::unique_ptr<Pending> open(const ConnectOptions& options);

}  // namespace peal::transport
