// Hashes 64-bit numbers, and makes unrelated seeds of them.
#pragma once

#include <cstdint>

namespace peal {

/// `hash` with one more word: mixed(mixed(0, a), b) depends on a, b and their order. Near words
/// give unrelated results, the same in every build and on every machine. Source: Steele, Lea and
/// Flood 2014, Fast splittable pseudorandom number generators: SplitMix64.
constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash += word + 0x9e37'79b9'7f4a'7c15u;
  hash = (hash ^ (hash >> 30)) * 0xbf58'476d'1ce4'e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d0'49bb'1331'11ebu;
  return hash ^ (hash >> 31);
}

}  // namespace peal
