// The server of a TCP store: one process of the job (rank 0) runs it, everyone is its client.
#pragma once

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/fd.h"
#include "peal/base/guarded.h"
#include "peal/base/per_process.h"
#include "peal/net/address.h"
#include "peal/net/proof.h"
#include "peal/net/strangers.h"

namespace peal::store {

/// Serves from construction to destruction, in a thread of its own. Nobody is served who has not
/// proved the secret of `context`; no client, proved or not, can make the others wait.
class TcpStoreServer final {
 public:
  /// `listeners` (at least one) come from net::listen_on. Errors: resource, usage (TLS
  /// without a secret).
  TcpStoreServer(std::vector<Fd> listeners,
                 net::ProofContext context,
                 const net::StrangerLimits& limits = {},
                 Report report = silent_report());
  /// Clients see peer_lost from now on. In a forked child it does nothing: the parent serves.
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  /// Where the first listener listens.
  net::Address address() const;
  /// Waits until no client is connected; returns whether it is so. Threads: any.
  bool wait_until_deserted(Deadline deadline);

 private:
  void publish(std::size_t clients);

  const OwnerProcess owner_;
  net::Address address_;
  Fd stop_;                                       // an eventfd: readable once the server has to end
  Guarded<std::size_t> clients_{std::size_t{0}};  // connections that are proved
  std::thread thread_;
};

}  // namespace peal::store
