#include "peal/launch/elastic/discovery.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/net/resolve.h"
#include "peal/rendezvous/interfaces.h"

namespace peal::launch::elastic {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

FoundHost parse_line(std::string_view line, int default_slots) {
  FoundHost host{.name = std::string(line), .slots = default_slots};
  const auto bracket = line.rfind(']');
  const auto colon = line.rfind(':');
  // More than one colon without brackets is an IPv6 address without slots.
  const bool has_slots =
      colon != std::string_view::npos &&
      (bracket == std::string_view::npos ? line.find(':') == colon : colon == bracket + 1);
  if (has_slots) {
    const auto slots = try_parse_number<int>(line.substr(colon + 1));
    host.name = line.substr(0, colon);
    host.slots = slots.value_or(-1);
  }
  if (host.name.size() > 2 && host.name.front() == '[' && host.name.back() == ']') {
    host.name = host.name.substr(1, host.name.size() - 2);
  }
  const bool has_space = host.name.find_first_of(kBlank) != std::string::npos;
  if (host.name.empty() || has_space || host.slots < 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the discovery script printed \"{}\": each line is a host, or "
                            "host:slots, such as localhost:2",
                            printable(line)));
  }
  return host;
}

std::string own_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

std::vector<FoundHost> parse_hosts(std::string_view text, int default_slots) {
  std::vector<FoundHost> hosts;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, std::min(end, text.find('#'))));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const FoundHost host = parse_line(line, default_slots);
    const auto known = std::ranges::find(hosts, host.name, &FoundHost::name);
    if (known == hosts.end()) {
      hosts.push_back(host);
    } else {
      known->slots = host.slots;
    }
  }
  return hosts;
}

bool is_this_machine(const std::string& host) {
  if (host == "localhost" || host == own_name()) return true;
  try {
    const auto own = rendezvous::own_interfaces(rendezvous::LinkLocal::kWith);
    const auto found = net::resolve(host, 1, Deadline::after(std::chrono::seconds(2)));
    return std::ranges::all_of(found, [&](const net::Address& address) {
      return address.is_loopback() ||
             std::ranges::count(own, address.with_port(0), &rendezvous::Interface::address) > 0;
    });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace peal::launch::elastic
