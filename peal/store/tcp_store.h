// A client of a TCP store's server (tcp_store_server.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/interrupt.h"
#include "peal/net/address.h"
#include "peal/net/proof.h"
#include "peal/store/store.h"

namespace peal::store {

/// Connects to the first of `addresses` that answers. Retries until the deadline, because the
/// server may start later.
/// `timeout` bounds each call that takes no deadline. `server` names the server in messages.
/// Errors: usage (the server has another secret or protection, or is not a peal process), peer_lost
///   (no server is there), timeout (the server does not complete the handshake).
/// Throws Interrupted.
std::unique_ptr<Store> connect_tcp_store(const std::vector<net::Address>& addresses,
                                         const net::ProofContext& context,
                                         Timeout timeout,
                                         Deadline deadline,
                                         const std::string& server = "the store's server",
                                         const Interrupt& interrupt = {});

}  // namespace peal::store
