// Lists of hosts, as -H and hostfiles have them.
#include <string>

#include <fmt/format.h>

#include "peal/launch/host_list.h"
#include "peal/launch/host_plan.h"

#include "tests/fuzz/fuzz.h"

namespace {

using namespace peal;

/// The hosts in a form that both parsers accept.
std::string written(const std::vector<launch::HostSlots>& hosts, char separator) {
  std::string text;
  for (const launch::HostSlots& host : hosts) {
    if (!text.empty()) text += separator;
    text += fmt::format("[{}]:{}", host.name, host.slots);  // right for any name
  }
  return text;
}

void check_hosts(const std::vector<launch::HostSlots>& hosts) {
  int slots = 0;
  for (const launch::HostSlots& host : hosts) {
    fuzz::require(!host.name.empty(), "a host has a name");
    fuzz::require(host.slots >= 1, "a host has slots");
    slots += host.slots;
  }
  fuzz::require(slots <= launch::kMostSlots, "the sum of the slots is bounded");
  fuzz::require(launch::parse_host_list(written(hosts, ',')) == hosts, "a list is read back");
  fuzz::require(launch::parse_hostfile(written(hosts, '\n')) == hosts, "a file is read back");
  const launch::HostPlan plan = launch::plan_hosts(hosts, slots);
  fuzz::require(plan.blocks.size() == hosts.size(), "each host has ranks");
}

}  // namespace

void peal::fuzz::check(std::string_view input) {
  using namespace launch;
  const auto list = unless_refused(ErrorKind::kUsage, [&] { return parse_host_list(input); });
  if (list) check_hosts(*list);
  const auto file = unless_refused(ErrorKind::kUsage, [&] { return parse_hostfile(input); });
  if (file) check_hosts(*file);
}
