#include "peal/base/half.h"

#include <cmath>

namespace peal {
namespace {

constexpr std::uint32_t kF32Sign = 0x8000'0000u;
constexpr std::uint32_t kF32Infinity = 0x7f80'0000u;

/// Drops the low `shift` bits of `value`, rounding to nearest, ties to even.
constexpr std::uint32_t round_off(std::uint32_t value, int shift) {
  const std::uint32_t half = 1u << (shift - 1);
  const std::uint32_t odd = (value >> shift) & 1u;
  return (value + half - 1u + odd) >> shift;
}

}  // namespace

BFloat16::BFloat16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    bits = static_cast<std::uint16_t>((word >> 16) | 0x40u);  // quiet NaN, not rounded to infinity
  } else {
    bits = static_cast<std::uint16_t>(round_off(word, 16));
  }
}

Float16::Float16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((word & kF32Sign) >> 16);
  const std::uint32_t magnitude = word & ~kF32Sign;
  if (magnitude > kF32Infinity) {
    bits = static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));  // quiet NaN
  } else if (magnitude >= 0x4780'0000u) {  // 65536 and beyond: infinity
    bits = static_cast<std::uint16_t>(sign | 0x7c00u);
  } else if (magnitude >= 0x3880'0000u) {  // normal: rebias the exponent from 127 to 15
    bits = static_cast<std::uint16_t>(sign | round_off(magnitude - (112u << 23), 13));
  } else if (magnitude < 0x3300'0000u) {  // below half of the smallest subnormal
    bits = sign;
  } else {  // subnormal: shift the implicit bit into place
    const int exponent = static_cast<int>(magnitude >> 23);
    const std::uint32_t mantissa = (magnitude & 0x7f'ffffu) | 0x80'0000u;
    bits = static_cast<std::uint16_t>(sign | round_off(mantissa, 126 - exponent));
  }
}

Float16::operator float() const {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

}  // namespace peal
