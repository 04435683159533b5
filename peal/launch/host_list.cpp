#include "peal/launch/host_list.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/base/split.h"

namespace peal::launch {
namespace {

constexpr std::size_t kLongestName = 253;  // of DNS
constexpr std::string_view kBlanks = " \t\r";

Error wrong_host(std::string_view text, std::string_view problem) {
  return Error(ErrorKind::kUsage, fmt::format("{}: {}", quoted_beginning(text), problem));
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_name(std::string_view text, std::string_view also) {
  return !text.empty() && text.size() <= kLongestName &&
         std::ranges::all_of(text, [&](unsigned char letter) {
           return std::isalnum(letter) != 0 || also.find(static_cast<char>(letter)) != also.npos;
         });
}

/// How a list gives the slots of its hosts.
struct SlotRule {
  int by_default = 1;  // without a number
  int least = 1;
};

int parse_slots(std::string_view text, std::string_view whole, const SlotRule& rule) {
  const auto slots = try_parse_number<int>(text);
  if (slots && *slots >= rule.least && *slots <= kMostSlots) return *slots;
  throw wrong_host(
      whole,
      fmt::format("the number of slots is from {} to {}, as in host:2", rule.least, kMostSlots));
}

/// "host", "host:N", "[v6]" or "[v6]:N".
HostSlots parse_host(std::string_view text, const SlotRule& rule) {
  const bool is_bracketed = text.starts_with('[');
  const auto end = is_bracketed ? text.find(']') : text.find(':');
  const std::string_view name = is_bracketed ? text.substr(1, end - 1) : text.substr(0, end);
  if (is_bracketed && (end == std::string_view::npos || !is_name(name, ":.%-_"))) {
    throw wrong_host(text, "an IPv6 address is written as in [fe80::1]:2");
  }
  std::string_view rest = end == std::string_view::npos ? "" : text.substr(end);
  if (is_bracketed) rest.remove_prefix(1);
  if (!is_bracketed && rest.find(':', 1) != std::string_view::npos) {
    throw wrong_host(text, "an IPv6 address needs brackets, as in [::1]:2");
  }
  if (!is_bracketed && name.find('@') != name.npos) {
    throw wrong_host(text, "give only the name of the host, and set its user in ~/.ssh/config");
  }
  if (!is_bracketed && !is_name(name, ".-_")) {
    throw wrong_host(text, "it is not the name of a host; hosts are written as in h1:2,h2:2");
  }
  if (rest.empty()) return {std::string(name), rule.by_default};
  if (!rest.starts_with(':')) throw wrong_host(text, "an IPv6 address is written as in [::1]:2");
  return {std::string(name), parse_slots(rest.substr(1), text, rule)};
}

/// Open MPI's upper limit for the ranks of a host has no effect here.
bool limits_slots(std::string_view setting) {
  return setting.starts_with("max_slots=") || setting.starts_with("max-slots=");
}

/// "host slots=N", or the forms of parse_host.
HostSlots parse_line(std::string_view line, const SlotRule& rule) {
  const auto gap = line.find_first_of(kBlanks);
  HostSlots host = parse_host(line.substr(0, gap), rule);
  if (gap == std::string_view::npos) return host;
  const std::string_view rest = trimmed(line.substr(gap));
  constexpr std::string_view kSlots = "slots=";
  const std::string_view word = line.substr(0, gap);
  const bool has_number = word.find(':') != std::string_view::npos && !word.ends_with(']');
  if (!rest.starts_with(kSlots) || has_number) {
    throw wrong_host(line, "a line has the form host, host:2 or host slots=2");
  }
  const auto end = rest.find_first_of(kBlanks);
  if (end != rest.npos && !limits_slots(trimmed(rest.substr(end)))) {
    throw wrong_host(line, "a line has the form host, host:2 or host slots=2");
  }
  host.slots = parse_slots(rest.substr(kSlots.size(), end - kSlots.size()), line, rule);
  return host;
}

/// Calls `add` with the host of each line. Errors: usage, which names the line; also those of
/// `add`.
void for_each_line(std::string_view text,
                   const SlotRule& rule,
                   const std::function<void(HostSlots)>& add) {
  int number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    try {
      add(parse_line(line, rule));
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("line {}, {}", number, error.message()));
    }
  }
}

/// Adds the slots of hosts that are named twice.
class HostList final {
 public:
  void add(HostSlots host) {
    total_ += host.slots;
    if (total_ > kMostSlots) {
      throw wrong_host(host.name, fmt::format("the hosts have more than {} slots", kMostSlots));
    }
    const auto [place, is_new] = places_.try_emplace(host.name, hosts_.size());
    if (is_new) {
      hosts_.push_back(std::move(host));
    } else {
      hosts_[place->second].slots += host.slots;
    }
  }
  std::vector<HostSlots> take() { return std::move(hosts_); }

 private:
  std::vector<HostSlots> hosts_;
  std::map<std::string, std::size_t> places_;
  int total_ = 0;  // at most twice kMostSlots
};

}  // namespace

std::vector<HostSlots> parse_host_list(std::string_view text) {
  HostList hosts;
  for (const std::string_view part : split(text, ',')) hosts.add(parse_host(trimmed(part), {}));
  return hosts.take();
}

std::vector<HostSlots> parse_hostfile(std::string_view text) {
  HostList hosts;
  for_each_line(text, {}, [&](HostSlots host) { hosts.add(std::move(host)); });
  std::vector<HostSlots> all = hosts.take();
  if (all.empty()) throw Error(ErrorKind::kUsage, "the file names no host");
  return all;
}

std::vector<HostSlots> parse_discovered_hosts(std::string_view text, int default_slots) {
  std::vector<HostSlots> hosts;
  for_each_line(text, {.by_default = default_slots, .least = 0}, [&](HostSlots host) {
    const auto known = std::ranges::find(hosts, host.name, &HostSlots::name);
    if (known == hosts.end()) {
      hosts.push_back(std::move(host));
    } else {
      known->slots = host.slots;
    }
  });
  return hosts;
}

}  // namespace peal::launch
