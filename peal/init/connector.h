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

  /// A transport between `world_ranks`, of which this is one. Called by each of them, in the same
  /// order of ranks and with a name that no other group of the job has. Errors: those of
  /// transport::open and transport::Pending::connect, and the store's; peer_lost (one of them has
  /// ended); of `look`, which is called now and then while some have not come.
  std::unique_ptr<transport::Transport> connect(std::span<const Rank> world_ranks,
                                                const std::string& group,
                                                Deadline deadline,
                                                const std::function<void()>& look = {}) const;

 private:
  /// Where to listen: nowhere if all ranks share memory, on loopback if they could.
  std::vector<net::Address> listening_addresses() const;

  rendezvous::Meeting meeting_;
  Config config_;
  Report report_;
  Bytes arena_;
};

}  // namespace peal::init
