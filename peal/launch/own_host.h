// Which names of hosts mean this machine. Called by `peal run`.
#pragma once

#include <span>
#include <string_view>

#include "peal/net/address.h"

namespace peal::launch {

/// Whether `name` is this machine: localhost, an address of loopback, the machine's own name
/// (`hostname`, with or without its domain), or one of `addresses` (their ports do not count).
/// Pure: looks up no name.
bool is_own_host(std::string_view name,
                 std::string_view hostname,
                 std::span<const net::Address> addresses);

}  // namespace peal::launch
