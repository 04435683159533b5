#include "peal/launch/job/json_escapes.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

namespace peal::launch {
namespace {

constexpr std::size_t kEscape = 6;  // the characters of \uD83D

bool is_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

/// The number in an escape \uXXXX at the beginning of `text`.
std::optional<std::uint32_t> escaped_front(std::string_view text) {
  if (text.size() < kEscape || !text.starts_with("\\u")) return std::nullopt;
  std::uint32_t number = 0;
  const char* const end = text.data() + kEscape;
  const auto [stop, error] = std::from_chars(text.data() + 2, end, number, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

/// The character of the pair of escapes at the beginning of `text`.
std::optional<std::uint32_t> pair_front(std::string_view text) {
  const auto high = escaped_front(text);
  if (!high || *high < 0xd800 || *high >= 0xdc00) return std::nullopt;
  const auto low = escaped_front(text.substr(kEscape));
  if (!low || *low < 0xdc00 || *low >= 0xe000) return std::nullopt;
  return 0x10000 + ((*high - 0xd800) << 10) + (*low - 0xdc00);
}

}  // namespace

std::string join_surrogates(std::string_view text) {
  if (!is_json(text)) return std::string(text);
  std::string result;
  while (!text.empty()) {
    if (const auto character = pair_front(text)) {
      result += fmt::format("\\U{:08x}", *character);
      text.remove_prefix(2 * kEscape);
      continue;
    }
    const std::size_t size = text.starts_with('\\') && text.size() > 1 ? 2 : 1;  // \\ is one escape
    result += text.substr(0, size);
    text.remove_prefix(size);
  }
  return result;
}

}  // namespace peal::launch
