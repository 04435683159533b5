// Connects the ranks of a group through the job's store. Each rank publishes where it listens, and
// connects to all others. The native backend uses it for the world and for every later group.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/report.h"
#include "peal/config/config.h"
#include "peal/net/address.h"
#include "peal/rendezvous/rendezvous.h"
#include "peal/transport/link/connect.h"
#include "peal/transport/transport.h"

namespace peal::init {

/// Threads: any number at once.
class Connector {
 public:
  /// `arena`: as in transport::ConnectOptions. Give less if many ranks are threads of one process,
  /// because each of them maps the memory of all others.
  Connector(rendezvous::Meeting meeting,
            Config config,
            Report report,
            Bytes arena = transport::ConnectOptions().arena);

  /// Receives the new transport.
  using Use = std::function<void(std::unique_ptr<transport::Transport>)>;

  /// Makes a transport between `world_ranks`, which include this rank, and calls `use` with it.
  /// Order: each of the ranks calls it, with the same order of ranks, and with a name that no other
  ///   group of the job has. The call returns only if it succeeds on all ranks, `use` included: if
  ///   one rank fails, all throw.
  /// Errors: those of transport::open, transport::PendingTransport::connect, `use` and the store;
  ///   the error of another rank; peer_lost (one of the ranks has ended); those of `look`, which is
  ///   called from time to time while ranks are missing.
  void connect(std::span<const Rank> world_ranks,
               const std::string& group,
               Deadline deadline,
               const std::function<void()>& look,
               const Use& use) const;

 private:
  Rank rank_among(std::span<const Rank> world_ranks) const;
  transport::ConnectOptions options_for(std::span<const Rank> world_ranks,
                                        const std::string& group) const;
  /// The addresses to listen on: none if all ranks share memory; loopback if all are on one host.
  std::vector<net::Address> listening_addresses() const;

  rendezvous::Meeting meeting_;
  Config config_;
  Report report_;
  Bytes arena_;
  std::shared_ptr<transport::HostPeers> peers_;  // of all groups; null if no memory is shared
};

}  // namespace peal::init
