// Sizes as people write them: in options, in environment variables, in PEAL_TUNE.
#pragma once

#include <optional>
#include <string_view>

#include "peal/base/units.h"

namespace peal {

/// "4096", "64K", "64kb", "1MiB", "2g": a whole number of bytes, or of a unit that is a power of
/// 1024, in either case. Nothing for what is no such number, or more than Bytes can count.
std::optional<Bytes> try_parse_size(std::string_view text);

}  // namespace peal
