// A range of addresses as users write it: "10.0.0.0/8", "2001:db8::/32", "10.1.2.3".
#pragma once

#include <optional>
#include <string_view>

#include "peal/net/address.h"

namespace peal::net {

/// A value.
class Subnet {
 public:
  /// Nothing if the text is not a range of IP addresses.
  static std::optional<Subnet> parse(std::string_view text);

  /// Whether the address begins with the subnet's bits. The port does not matter.
  bool contains(const Address& address) const;

 private:
  Address base_;
  int bits_ = 0;
};

}  // namespace peal::net
