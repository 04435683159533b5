// Sizes as text: in options, in environment variables, in PEAL_TUNE.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "peal/base/units.h"

namespace peal {

/// Parses "4096", "64K", "64kb", "1MiB", "2g": a whole number of bytes, or of a unit that is a
/// power of 1024, in upper or lower case. Returns nothing for any other text, and for more than
/// Bytes can hold.
std::optional<Bytes> try_parse_size(std::string_view text);

enum class SizeStyle : unsigned char {
  kShort,  // "64k", "1500": for `try_parse_size`, without spaces
  kLong,   // "64 KiB", "1500 B": for people
};

/// The size in the largest unit that gives a whole number.
std::string size_text(Bytes size, SizeStyle style);

}  // namespace peal
