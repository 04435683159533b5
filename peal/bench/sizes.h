// Sizes and lists as they are written on the command line. Pure. Called by `peal bench`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/units.h"

namespace peal::bench {

/// "4", "64K", "1m", "2GiB", as base/size_text.h has it; at least 1 B, at most 1 TiB. Errors:
/// usage.
Bytes parse_size(std::string_view text);

/// "4K,1M": a list. "4:256M": from the first up to the second, each four times the one before;
/// "4:256M:2": twice. Both may be mixed; the result ascends and names nothing twice. Errors: usage.
std::vector<Bytes> parse_sizes(std::string_view text);

/// The parts between commas, none of them empty. Errors: usage, which names `option`.
std::vector<std::string> parse_list(std::string_view option, std::string_view text);

}  // namespace peal::bench
