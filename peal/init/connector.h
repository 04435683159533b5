// Connects the ranks of a group through the job's store: each publishes where it listens and
// connects to all others. The native backend calls it for the world and for every group made later.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/config.h"
#include "peal/base/report.h"
#include "peal/net/address.h"
#include "peal/rendezvous/rendezvous.h"
#include "peal/transport/connect.h"
#include "peal/transport/transport.h"

namespace peal::init {

/// Threads: any number at once.
class Connector {
 public:
  /// `arena` as transport::ConnectOptions has it: less where many ranks are threads of one process,
  /// each of which maps all others' memory.
  Connector(rendezvous::Meeting meeting,
            Config config,
            Report report,
            Bytes arena = transport::ConnectOptions().arena);

  /// What the caller makes of the transport.
  using Use = std::function<void(std::unique_ptr<transport::Transport>)>;

  /// Makes a transport between `world_ranks`, of which this is one, and calls `use` with it.
  /// Called by each of them, in the same order of ranks and with a name that no other group of the
  /// job has. Returns only if all of them have come so far, `use` included: if one rank fails, all
  /// throw.
  /// Errors: those of transport::open, transport::Pending::connect, `use` and the store; what
  /// another rank failed of; peer_lost (one of them has ended); of `look`, which is called now and
  /// then while some have not come.
  void connect(std::span<const Rank> world_ranks,
               const std::string& group,
               Deadline deadline,
               const std::function<void()>& look,
               const Use& use) const;

 private:
  Rank rank_among(std::span<const Rank> world_ranks) const;
  transport::ConnectOptions options_for(std::span<const Rank> world_ranks,
                                        const std::string& group) const;
  /// Where to listen: nowhere if all ranks share memory, on loopback if they could.
  std::vector<net::Address> listening_addresses() const;

  rendezvous::Meeting meeting_;
  Config config_;
  Report report_;
  Bytes arena_;
  std::shared_ptr<transport::HostPeers> peers_;  // of all groups; null if no memory is shared
};

}  // namespace peal::init
