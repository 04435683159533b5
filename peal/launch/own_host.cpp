#include "peal/launch/own_host.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/net/resolve.h"
#include "peal/rendezvous/interfaces.h"

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

std::string name_of_this_machine() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::vector<net::Address> addresses_of_this_machine() {
  std::vector<net::Address> addresses;
  for (const auto& interface : rendezvous::own_interfaces(rendezvous::LinkLocal::kWith)) {
    addresses.push_back(interface.address);
  }
  return addresses;
}

bool is_among(const net::Address& address, std::span<const net::Address> own) {
  return address.is_loopback() || std::ranges::any_of(own, [&](const net::Address& each) {
           return each.with_port(0) == address;
         });
}

}  // namespace

bool is_own_host(std::string_view name,
                 std::string_view hostname,
                 std::span<const net::Address> addresses) {
  if (is_same_name(name, "localhost") || is_same_name(name, hostname)) return true;
  if (is_same_name(name, hostname.substr(0, hostname.find('.')))) return true;
  const auto address = as_address(name);
  return address && !address->is_unix() && is_among(*address, addresses);
}

bool is_spelled_as_this_machine(const std::string& name) {
  return is_own_host(name, name_of_this_machine(), addresses_of_this_machine());
}

bool is_this_machine(const std::string& name) {
  if (is_spelled_as_this_machine(name)) return true;
  const std::vector<net::Address> own = addresses_of_this_machine();
  try {
    const auto found = net::resolve(name, 1, Deadline::after(std::chrono::seconds(2)));
    return !found.empty() && std::ranges::all_of(found, [&](const net::Address& address) {
      return is_among(address.with_port(0), own);
    });
  } catch (const Error&) {
    return false;
  }
}

bool has_other_hosts(std::span<const HostSlots> hosts) {
  return !std::ranges::all_of(hosts, is_this_machine, &HostSlots::name);
}

}  // namespace peal::launch
