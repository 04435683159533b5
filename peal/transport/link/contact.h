// A contact: the data that other ranks need to reach a rank. `open` (connect.h) makes the contact,
// and the rendezvous carries it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/units.h"
#include "peal/config/config.h"
#include "peal/net/address.h"

namespace peal::transport {

struct Contact {
  std::string host_id;   // equal if processes can share memory and descriptors; see own_host_id
  std::string hostname;  // for messages
  std::int64_t pid = 0;  // for messages, and to find the CPUs that the process may use
  std::int64_t pid_namespace = 0;  // the namespace in which `pid` is valid; 0: unknown
  TransportChoice choice = TransportChoice::kAuto;  // must be the same on all ranks
  std::vector<net::Address> addresses;  // where the rank listens, the preferred address first

  friend bool operator==(const Contact&, const Contact&) = default;
};

/// host_id, hostname and pid of this process; no addresses, and the default transport.
Contact own_contact();

/// Whether `contact.pid` is valid here too, so that /proc describes that process.
bool is_visible(const Contact& contact, const Contact& own);

/// "rank 1 (pid 77 on host b)", for messages.
std::string name_of(Rank rank, const Contact& contact);

/// The machine's boot, the user and the network namespace. Processes must share these to meet over
/// a unix socket and to pass descriptors. Containers that share these have the same id.
std::string own_host_id();

/// The part of a host id that is equal for processes that share cores, even in containers with
/// different networks.
std::string_view machine_of(std::string_view host_id);

}  // namespace peal::transport
