// Addresses of Unix sockets for tests. Abstract names count for the whole machine, on which other
// tests may run.
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
