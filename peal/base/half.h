// 16-bit floating point as storage: bits that convert to float and back, round to nearest even.
// Arithmetic happens in float. The kernels convert whole vectors; these types are for single values
// and tests.
#pragma once

#include <bit>
#include <cstdint>

namespace peal {

/// IEEE 754 binary16.
struct Float16 {
  std::uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);
  explicit operator float() const;
  friend bool operator==(Float16 a, Float16 b) { return float(a) == float(b); }
};

/// The upper half of a binary32.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  friend bool operator==(BFloat16 a, BFloat16 b) { return float(a) == float(b); }
};

}  // namespace peal
