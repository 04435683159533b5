// Addresses of Unix sockets for tests. All processes of the machine share abstract socket names, so
// each name contains the process id.
#pragma once

#include <unistd.h>

#include <string_view>

#include <fmt/format.h>

#include "peal/net/address.h"

namespace peal::net {

/// An abstract address that no other process uses.
inline Address unix_address(std::string_view name) {
  return Address::parse(fmt::format("unix:@peal-{}-{}", name, ::getpid()));
}

}  // namespace peal::net
