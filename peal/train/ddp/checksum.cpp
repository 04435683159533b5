#include "peal/train/ddp/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace peal::train {
namespace {

/// One-to-one. Uses two multiplications, so that each bit of the word, even the highest, changes
/// many bits.
std::uint64_t mix(std::uint64_t word) {
  return std::rotl(word * 0x9e3779b97f4a7c15, 31) * 0xbf58476d1ce4e5b9;
}

/// One-to-one in the word for a given sum, and in the sum for a given word.
std::uint64_t add_word(std::uint64_t sum, std::uint64_t word) {
  return std::rotl(sum ^ mix(word), 27) * 0x9e3779b97f4a7c15;
}

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) {
  std::uint64_t sum = add_word(seed, bytes.size());
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), sizeof(std::uint64_t)));
    std::uint64_t word = 0;
    std::memcpy(&word, piece.data(), piece.size());
    sum = add_word(sum, word);
    bytes = bytes.subspan(piece.size());
  }
  return sum;
}

}  // namespace peal::train
