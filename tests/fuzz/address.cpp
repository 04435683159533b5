// Addresses and ranges of them: an address that is parsed and printed parses to the same value.
#include "peal/net/address.h"

#include "peal/net/subnet.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  if (const auto subnet = net::Subnet::parse(input)) {
    subnet->contains(net::Address::parse("10.0.0.1:1"));
    subnet->contains(net::Address::parse("[2001:db8::1]:1"));
  }
  const auto address =
      unless_refused(ErrorKind::kUsage, [&] { return net::Address::parse(input); });
  if (!address) return;
  const std::string text = address->to_string();
  require(net::Address::parse(text) == *address, text);
}
