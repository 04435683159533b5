// A number that shows whether ranks have the same bytes. Does not protect against attackers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace peal::train {

/// 64 bits. Differs if the inputs differ in one word of 8 bytes, and almost surely if they differ
/// in more words. For several blocks, pass the checksum of the previous block as `seed`. Cost:
/// reads the bytes once, at some GB/s.
std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed = 0);

}  // namespace peal::train
