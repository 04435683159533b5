// Parses sizes and lists of the command line. Pure. Called by `peal bench`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/base/units.h"

namespace peal::bench {

/// "4", "64K", "1m", "2GiB", in the syntax of base/size_text.h; at least 1 B, at most 1 TiB.
/// Errors: usage.
Bytes parse_size(std::string_view text);

/// "4K,1M" is a list. "4:256M" is a range in steps by the factor four; "4:256M:2" has the factor
/// two. Lists and ranges may be mixed. The result ascends and has no duplicates. Errors: usage.
std::vector<Bytes> parse_sizes(std::string_view text);

/// The parts between commas; no part may be empty. Errors: usage, which names `option`.
std::vector<std::string> parse_list(std::string_view option, std::string_view text);

}  // namespace peal::bench
