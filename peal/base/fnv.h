// A short hash of a text, the same in every build and on every machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace peal {

/// Source: FNV-1a, 64 bits.
constexpr std::uint64_t fnv(std::string_view text) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325u;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100'0000'01b3u;
  }
  return hash;
}

}  // namespace peal
