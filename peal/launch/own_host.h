// Which names of hosts mean this machine. Called by `peal run` and by elastic jobs.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "peal/launch/host_list.h"
#include "peal/net/address.h"

namespace peal::launch {

/// Whether `name` is this machine: localhost, an address of loopback, the machine's own name
/// (`hostname`, with or without its domain), or one of `addresses` (their ports do not count).
/// Pure: looks up no name.
bool is_own_host(std::string_view name,
                 std::string_view hostname,
                 std::span<const net::Address> addresses);

/// The same for the name and the addresses of this machine. Looks up no name.
bool is_spelled_as_this_machine(const std::string& name);

/// The same, but another name may be an alias, as in /etc/hosts: then all its addresses are
/// addresses of this machine. Cost: asks the name service for other names, up to 2 s.
bool is_this_machine(const std::string& name);

/// Whether `hosts` has a name that is not this machine.
bool has_other_hosts(std::span<const HostSlots> hosts);

}  // namespace peal::launch
