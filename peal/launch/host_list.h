// Lists of hosts, as mpirun and horovodrun take them: an option, a file, or the output of a
// discovery script. Called by `peal run` and by elastic jobs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace peal::launch {

/// A host and its slots.
struct HostSlots {
  std::string name;  // as the user wrote it; an IPv6 address without brackets
  int slots = 1;     // how many ranks may run there
  friend bool operator==(const HostSlots&, const HostSlots&) = default;
};

/// The most slots of a list. More are a mistake.
inline constexpr int kMostSlots = 1'000'000;

/// Parses hosts that are separated by commas: "h1:2,h2:2", "h1", "[fe80::1]:4".
///   A host without a number has one slot. A host that is named twice has the sum of its slots, at
///   its first place. Two names of one machine are two hosts.
/// Errors: usage.
std::vector<HostSlots> parse_host_list(std::string_view text);

/// Parses the text of a hostfile. A line has one host: "host", "host:N", "host slots=N", with an
/// IPv6 address in brackets. Blank lines, and everything after a #, are comments.
/// Errors: usage, which names the line.
std::vector<HostSlots> parse_hostfile(std::string_view text);

/// Parses the output of a discovery script: lines as in a hostfile. A host without a number has
/// `default_slots`. 0 slots are allowed: such a host is about to leave. If a host is named
/// twice, the last line counts. A list without hosts is allowed.
/// Errors: as above.
std::vector<HostSlots> parse_discovered_hosts(std::string_view text, int default_slots);

}  // namespace peal::launch
