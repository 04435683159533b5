// What a rank tells the others so that they can reach it: published in the store, collected from
// it. Used by the transports when they connect.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/net/address.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

struct Contact {
  std::string host_id;   // equal where processes can share memory and descriptors; see own_host_id
  std::string hostname;  // for messages
  std::int64_t pid = 0;  // for messages
  std::vector<net::Address> addresses;  // where it listens, the preferred one first

  friend bool operator==(const Contact&, const Contact&) = default;
};

/// host_id, hostname and pid of this process; no addresses.
Contact own_contact();

/// The machine's boot, the user and the network namespace: what processes must share to meet over a
/// unix socket and to pass descriptors. The same in containers that share these.
std::string own_host_id();

std::string encode(const Contact& contact);
/// Errors: mismatch for anything that `encode` did not make.
Contact decode(std::string_view bytes);

/// Errors: of the store.
void publish(store::Store& store, Rank rank, const Contact& contact);

/// The contacts of `ranks`, in that order, once all are there.
/// Errors: timeout, which names the ranks that are missing; of the store.
std::vector<Contact> collect(store::Store& store, std::span<const Rank> ranks, Deadline deadline);

}  // namespace peal::rendezvous
