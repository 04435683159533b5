#include "peal/base/printable.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace peal {
namespace {

bool is_control(std::uint32_t letter) {
  return letter < 0x20 || (letter >= 0x7f && letter < 0xa0);  // C0, DEL and C1
}

/// The number of bytes of a UTF-8 character, by its first byte; 0 if no character begins with it.
std::size_t size_of_character(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;
  if (first < 0xe0) return 2;
  if (first < 0xf0) return 3;
  return first < 0xf5 ? 4 : 0;
}

struct Character {
  std::uint32_t letter = 0;
  std::size_t size = 0;  // in bytes; 0: the text does not begin with a character of UTF-8
};

/// The first character of `text`, which is not empty. Source: RFC 3629.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  const std::size_t size = size_of_character(first);
  if (size == 0 || size > text.size()) return {};
  std::uint32_t letter = size == 1 ? first : first & (0x7fu >> size);
  for (std::size_t at = 1; at < size; ++at) {
    if ((byte(at) & 0xc0) != 0x80) return {};
    letter = letter << 6 | (byte(at) & 0x3fu);
  }
  const bool is_overlong = (size == 3 && letter < 0x800) || (size == 4 && letter < 0x10000);
  const bool is_half = letter >= 0xd800 && letter < 0xe000;  // of a surrogate pair
  if (is_overlong || is_half || letter > 0x10ffff) return {};
  return {letter, size};
}

/// The number of bytes of the first character of `text` if it is safe for a terminal; else 0.
std::size_t printable_front(std::string_view text) {
  const Character first = first_character(text);
  return is_control(first.letter) ? 0 : first.size;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = first_character(text).size;
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t size = printable_front(text);
    if (size > 0) {
      result += text.substr(0, size);
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return result;
}

std::string printable_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(
      line, [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; }, ' ');
  return printable(line);
}

std::string quoted_beginning(std::string_view text) {
  constexpr std::size_t kShown = 60;
  return fmt::format("\"{}{}\"", text.substr(0, kShown), text.size() > kShown ? "..." : "");
}

}  // namespace peal
