// The network interfaces of this machine, and which of their addresses to publish.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/net/address.h"

namespace peal::rendezvous {

/// One address of an interface that is up. Interfaces with several addresses appear several times.
struct Interface {
  std::string name;
  net::Address address;  // port 0
  friend bool operator==(const Interface&, const Interface&) = default;
};

/// IPv6 link-local addresses mean something else on each machine, so that no rank can be told one.
enum class LinkLocal : unsigned char { kWithout, kWith };

/// Errors: resource.
std::vector<Interface> own_interfaces(LinkLocal link_local = LinkLocal::kWithout);

/// Who has to reach the addresses.
enum class Reach : unsigned char { kThisHost, kOtherHosts };

/// Pure. `filter` (Config::interfaces) takes names, ^name and CIDR, separated by commas: what is
/// named, without what stands behind a ^; all where nothing is named. An empty filter means
/// loopback for kThisHost and everything but loopback for kOtherHosts. The preferred ones come
/// first: in the filter's order, and bridges of containers and virtual machines last, since every
/// machine has the same addresses on them. Errors: usage, which lists what there is, if nothing is
/// left.
std::vector<net::Address> choose_addresses(std::span<const Interface> interfaces,
                                           std::string_view filter,
                                           Reach reach);

}  // namespace peal::rendezvous
