#include "peal/net/subnet.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "peal/base/bracketed.h"
#include "peal/base/error.h"
#include "peal/base/parse_number.h"

namespace peal::net {
namespace {

/// The address in network order: 4 bytes, 16 bytes, or no bytes for a unix socket.
std::span<const std::byte> raw_bytes(const Address& address) {
  const auto* raw = reinterpret_cast<const std::byte*>(address.raw());
  switch (address.raw()->sa_family) {
    case AF_INET:
      return {raw + offsetof(sockaddr_in, sin_addr), sizeof(in_addr)};
    case AF_INET6:
      return {raw + offsetof(sockaddr_in6, sin6_addr), sizeof(in6_addr)};
    default:
      return {};
  }
}

std::optional<Address> host_address(std::string_view host) {
  try {
    return Address::parse(bracketed(std::string(host)) + ":0");
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<Subnet> Subnet::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto base = host_address(text.substr(0, slash));
  if (!base) return std::nullopt;
  Subnet subnet;
  subnet.base_ = *base;
  const int all = static_cast<int>(raw_bytes(*base).size() * 8);
  subnet.bits_ = all;
  if (slash == std::string_view::npos) return subnet;
  const auto bits = try_parse_number<int>(text.substr(slash + 1));
  if (!bits || *bits < 0 || *bits > all) return std::nullopt;
  subnet.bits_ = *bits;
  return subnet;
}

bool Subnet::contains(const Address& address) const {
  const auto own = raw_bytes(base_);
  const auto other = raw_bytes(address);
  if (own.empty() || own.size() != other.size()) return false;
  const auto whole = static_cast<std::size_t>(bits_ / 8);
  if (!std::equal(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(whole), other.begin())) {
    return false;
  }
  const int rest = bits_ % 8;
  if (rest == 0) return true;
  const auto mask = static_cast<std::byte>(0xff << (8 - rest));
  return (own[whole] & mask) == (other[whole] & mask);
}

}  // namespace peal::net
