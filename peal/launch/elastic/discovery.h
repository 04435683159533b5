// Reads the output of the discovery script. Pure but for is_this_machine. Called by driver.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/elastic/state.h"

namespace peal::launch::elastic {

/// The hosts that the script printed: lines of `host`, `host:slots`, `[v6]:slots`. Empty lines and
/// comments from `#` on are ignored. A host that comes twice has the slots of its last line.
/// Errors: usage, which quotes the line.
std::vector<FoundHost> parse_hosts(std::string_view text, int default_slots);

/// Whether the name means this machine: localhost, its own name, or one of its addresses.
/// Cost: asks the name service for other names, up to 2 s.
bool is_this_machine(const std::string& host);

}  // namespace peal::launch::elastic
