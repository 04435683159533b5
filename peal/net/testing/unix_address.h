// Addresses of unix sockets for tests. All processes of the machine share abstract socket names.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include "peal/net/address.h"
#include "peal/net/mac.h"

namespace peal::net {

/// An abstract address that nothing else uses, and whose name contains `name`.
inline Address unix_address(std::string_view name) {
  return Address::abstract_unix(fmt::format("peal-{}-{}", name, random_hex(16)));
}

}  // namespace peal::net
