// The server of a TCP store. One process of the job (rank 0) runs it; all ranks are its clients.
#pragma once

#include <cstddef>
#include <thread>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/guarded.h"
#include "peal/net/accept_limiter.h"
#include "peal/net/address.h"
#include "peal/net/proof.h"
#include "peal/system/fd.h"
#include "peal/system/per_process.h"

namespace peal::store {

/// Serves from construction to destruction, in its own thread. Serves only clients that have proved
/// the secret of `context`. No client, proved or not, can delay the others.
class TcpStoreServer final {
 public:
  /// `listeners` (at least one) come from net::listen_on. Errors: resource, usage (TLS
  /// without a secret).
  TcpStoreServer(std::vector<Fd> listeners,
                 net::ProofContext context,
                 const net::AcceptLimits& limits = {},
                 Report report = silent_report());
  /// From now on the clients get peer_lost. In a forked child it does nothing: the parent serves.
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  /// The address of the first listener.
  net::Address address() const;
  /// Waits until no client is connected. Returns false if for the time `pause` no client leaves.
  /// Threads: any.
  bool wait_until_all_have_left(Timeout pause);

 private:
  void publish(std::size_t clients);

  const OwnerProcess owner_;
  net::Address address_;
  Fd stop_;                                       // an eventfd: readable once the server must end
  Guarded<std::size_t> clients_{std::size_t{0}};  // the proved connections
  std::thread thread_;
};

}  // namespace peal::store
