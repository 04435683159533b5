// Numbers in the output of a program.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>

namespace peal::testing {

/// The number that follows the first `words` of the text; -1 if the text has no such number.
inline std::int64_t number_after(const std::string& text, const std::string& words) {
  std::int64_t number = -1;
  const std::size_t at = text.find(words);
  if (at == std::string::npos) return number;
  const char* const begin = text.data() + at + words.size();
  std::from_chars(begin, text.data() + text.size(), number);
  return number;
}

}  // namespace peal::testing
