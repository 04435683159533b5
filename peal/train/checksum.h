// A number that tells whether ranks have the same bytes. Not for protection against attackers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace peal::train {

/// 64 bits: different if the inputs differ in one word of 8 bytes, and almost surely if they differ
/// in more. `seed` is the checksum of the bytes before, to take several blocks together.
/// Cost: reads the bytes once, at some GB/s.
std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed = 0);

}  // namespace peal::train
