// Durations as text: in job files, in options.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace peal {

/// Parses "7200s", "1.5s", "500ms", "2h", "1h30m", "7d": numbers with the units d, h, m, s, ms, the
/// largest unit first. Returns nothing for any other text, for parts of a millisecond, and for more
/// than 100 years.
std::optional<std::chrono::milliseconds> try_parse_duration(std::string_view text);

/// The duration in the largest unit that gives a whole number: "2h", "90m", "1500ms"; "0s".
/// `duration` is not negative. try_parse_duration reads the text back.
std::string duration_text(std::chrono::milliseconds duration);

}  // namespace peal
