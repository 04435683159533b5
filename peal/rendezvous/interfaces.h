// Lists the network interfaces of this machine and chooses the addresses that a rank publishes.
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

/// Whether to list IPv6 link-local addresses. A rank never publishes one, because its meaning
/// differs on each machine.
enum class LinkLocal : unsigned char { kWithout, kWith };

/// Errors: resource.
std::vector<Interface> own_interfaces(LinkLocal link_local = LinkLocal::kWithout);

/// Where the ranks run that must reach the addresses.
enum class Reach : unsigned char { kThisHost, kOtherHosts };

/// Pure. `filter` (Config::interfaces) is a list of interface names and CIDR subnets, separated by
/// commas. A ^ in front excludes an entry.
///   The result has the addresses of the named entries, in the filter's order.
///   If the filter names none, the result has loopback for kThisHost, or all other addresses for
///   kOtherHosts. Bridges of containers and virtual machines then come last, since every machine
///   has the same addresses on them.
/// Errors: usage if no address is left; the error lists this machine's addresses.
std::vector<net::Address> choose_addresses(std::span<const Interface> interfaces,
                                           std::string_view filter,
                                           Reach reach);

}  // namespace peal::rendezvous
