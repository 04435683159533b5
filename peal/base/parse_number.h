// Numbers in texts: options, environment variables, files, messages.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace peal {

/// The number, if it is the whole text and fits the type; no sign but a minus, no spaces.
/// Floating-point types also accept "1e3", "inf" and "nan".
template <class Number>
std::optional<Number> try_parse_number(std::string_view text) {
  const char* const end = text.data() + text.size();
  Number number{};
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace peal
