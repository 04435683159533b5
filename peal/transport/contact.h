// What a rank tells the others so that they can reach it. `open` (connect.h) makes it, rendezvous
// carries it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/config.h"
#include "peal/base/units.h"
#include "peal/net/address.h"

namespace peal::transport {

struct Contact {
  std::string host_id;   // equal where processes can share memory and descriptors; see own_host_id
  std::string hostname;  // for messages
  std::int64_t pid = 0;  // for messages, and to see what CPUs it may use
  std::int64_t pid_namespace = 0;                   // in which it has that number; 0: not known
  TransportChoice choice = TransportChoice::kAuto;  // must be the same on all ranks
  std::vector<net::Address> addresses;              // where it listens, the preferred one first

  friend bool operator==(const Contact&, const Contact&) = default;
};

/// host_id, hostname and pid of this process; no addresses, and the transport of who asks for none.
Contact own_contact();

/// Whether the process of `contact` has its number here, too: so that /proc tells of it.
bool is_visible(const Contact& contact, const Contact& own);

/// "rank 1 (pid 77 on host b)", for messages.
std::string name_of(Rank rank, const Contact& contact);

/// The machine's boot, the user and the network namespace: what processes must share to meet over a
/// unix socket and to pass descriptors. The same in containers that share these.
std::string own_host_id();

/// Of a host id, the part that is equal where processes share cores, though they may be in
/// containers with networks of their own.
std::string_view machine_of(std::string_view host_id);

}  // namespace peal::transport
