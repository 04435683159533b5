#include "peal/rendezvous/interfaces.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/base/split.h"
#include "peal/net/subnet.h"

namespace peal::rendezvous {
namespace {

struct FreeList {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

bool is_link_local(const sockaddr* address) {
  if (address->sa_family != AF_INET6) return false;
  return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

/// One entry of a filter.
struct Rule {
  std::string_view text;  // without the ^
  bool excludes = false;

  bool matches(const Interface& interface) const {
    if (interface.name == text) return true;
    const auto subnet = net::Subnet::parse(text);
    return subnet && subnet->contains(interface.address);
  }
};

std::vector<Rule> parse_filter(std::string_view filter) {
  std::vector<Rule> rules;
  for (std::string_view entry : split(filter, ',')) {
    const bool excludes = entry.starts_with('^');
    if (excludes) entry.remove_prefix(1);
    if (!entry.empty()) rules.push_back({entry, excludes});
  }
  return rules;
}

bool is_bridge(const Interface& interface) {
  constexpr std::array<std::string_view, 4> kBeginnings = {"docker", "virbr", "br-", "veth"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(), [&](std::string_view beginning) {
    return interface.name.starts_with(beginning);
  });
}

/// The interfaces to choose from if no rule names one, the preferred ones first.
std::vector<Interface> by_default(std::span<const Interface> interfaces, Reach reach) {
  std::vector<Interface> chosen;
  for (const Interface& interface : interfaces) {
    if (interface.address.is_loopback() == (reach == Reach::kThisHost)) chosen.push_back(interface);
  }
  std::stable_partition(
      chosen.begin(), chosen.end(), [](const Interface& i) { return !is_bridge(i); });
  return chosen;
}

Error nothing_left(std::span<const Interface> interfaces, std::string_view filter) {
  std::vector<std::string> all;
  for (const Interface& interface : interfaces) {
    const std::string address = interface.address.to_string();
    all.push_back(fmt::format("{} {}", interface.name, address.substr(0, address.rfind(':'))));
  }
  return Error(
      ErrorKind::kUsage,
      fmt::format("PEAL_INTERFACE=\"{}\" leaves no address at which other ranks can reach this "
                  "machine; name one of its addresses: {}",
                  filter,
                  all.empty() ? "none" : fmt::format("{}", fmt::join(all, ", "))));
}

}  // namespace

std::vector<Interface> own_interfaces(LinkLocal link_local) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) throw system_error("cannot list the network interfaces", errno);
  const std::unique_ptr<ifaddrs, FreeList> list(first);
  std::vector<Interface> interfaces;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    const sockaddr* address = entry->ifa_addr;
    if (address == nullptr || !(entry->ifa_flags & IFF_UP)) continue;
    if (link_local == LinkLocal::kWithout && is_link_local(address)) continue;
    if (address->sa_family == AF_INET) {
      interfaces.push_back({entry->ifa_name, net::Address(address, sizeof(sockaddr_in))});
    } else if (address->sa_family == AF_INET6) {
      interfaces.push_back({entry->ifa_name, net::Address(address, sizeof(sockaddr_in6))});
    }
  }
  return interfaces;
}

std::vector<net::Address> choose_addresses(std::span<const Interface> interfaces,
                                           std::string_view filter,
                                           Reach reach) {
  const std::vector<Rule> rules = parse_filter(filter);
  const bool names_some =
      std::any_of(rules.begin(), rules.end(), [](const Rule& rule) { return !rule.excludes; });
  std::vector<Interface> candidates = by_default(interfaces, reach);
  if (names_some) {
    candidates.clear();
    for (const Rule& rule : rules) {
      if (rule.excludes) continue;
      std::copy_if(interfaces.begin(),
                   interfaces.end(),
                   std::back_inserter(candidates),
                   [&](const Interface& i) { return rule.matches(i); });
    }
  }
  std::vector<net::Address> addresses;
  for (const Interface& candidate : candidates) {
    const bool excluded = std::any_of(rules.begin(), rules.end(), [&](const Rule& rule) {
      return rule.excludes && rule.matches(candidate);
    });
    const bool known =
        std::find(addresses.begin(), addresses.end(), candidate.address) != addresses.end();
    if (!excluded && !known) addresses.push_back(candidate.address);
  }
  if (addresses.empty()) throw nothing_left(interfaces, filter);
  return addresses;
}

}  // namespace peal::rendezvous
