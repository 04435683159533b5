#include "peal/launch/own_host.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::launch {
namespace {

bool is_same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a,
      b,
      {},
      [](unsigned char c) { return std::tolower(c); },
      [](unsigned char c) { return std::tolower(c); });
}

/// The address that `name` spells, with port 0.
std::optional<net::Address> as_address(std::string_view name) {
  const bool is_v6 = name.find(':') != std::string_view::npos;
  try {
    return net::Address::parse(is_v6 ? fmt::format("[{}]:0", name) : fmt::format("{}:0", name));
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

bool is_own_host(std::string_view name,
                 std::string_view hostname,
                 std::span<const net::Address> addresses) {
  if (is_same_name(name, "localhost") || is_same_name(name, hostname)) return true;
  if (is_same_name(name, hostname.substr(0, hostname.find('.')))) return true;
  const auto address = as_address(name);
  if (!address || address->is_unix()) return false;
  return address->is_loopback() || std::ranges::any_of(addresses, [&](const net::Address& own) {
           return own.with_port(0) == *address;
         });
}

}  // namespace peal::launch
