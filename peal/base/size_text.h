// Sizes as people write them: in options, in environment variables, in PEAL_TUNE.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "peal/base/units.h"

namespace peal {

/// "4096", "64K", "64kb", "1MiB", "2g": a whole number of bytes, or of a unit that is a power of
/// 1024, in either case. Nothing for what is no such number, or more than Bytes can count.
std::optional<Bytes> try_parse_size(std::string_view text);

enum class SizeStyle : unsigned char {
  kShort,  // "64k", "1500": as `try_parse_size` reads it, without spaces
  kLong,   // "64 KiB", "1500 B": to be looked at
};

/// In the largest unit of which it is a whole number.
std::string size_text(Bytes size, SizeStyle style);

}  // namespace peal
