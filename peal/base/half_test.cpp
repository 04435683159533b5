#include "peal/base/half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>

#include <gtest/gtest.h>

namespace peal {
namespace {

template <class Half>
Half from_bits(int bits) {
  Half half;
  half.bits = static_cast<std::uint16_t>(bits);
  return half;
}

template <class Half>
class HalfTest : public testing::Test {};

template <class Half>
constexpr int kInfinityBits = 0x7c00;
template <>
constexpr int kInfinityBits<BFloat16> = 0x7f80;

using Halves = testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(HalfTest, Halves);

TYPED_TEST(HalfTest, EveryValueSurvivesConversionToFloatAndBack) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto half = from_bits<TypeParam>(bits);
    const auto value = static_cast<float>(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(value)))) << bits;
    } else {
      EXPECT_EQ(TypeParam(value).bits, half.bits) << bits;
    }
  }
}

/// The value of the bits by the format's definition: exponent and mantissa, in exact arithmetic.
template <class Half>
double value_of(int bits) {
  const int mantissa_bits = std::is_same_v<Half, Float16> ? 10 : 7;
  const int bias = std::is_same_v<Half, Float16> ? 15 : 127;
  const int exponent = (bits & 0x7fff) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int implicit = exponent == 0 ? 0 : 1 << mantissa_bits;
  const int power = std::max(exponent, 1) - bias - mantissa_bits;
  return std::copysign(std::ldexp(implicit + mantissa, power), bits & 0x8000 ? -1.0 : 1.0);
}

TYPED_TEST(HalfTest, EveryPatternHasTheValueOfItsFormat) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto value = static_cast<float>(from_bits<TypeParam>(bits));
    const int magnitude = bits & 0x7fff;
    if (magnitude > kInfinityBits<TypeParam>) {
      EXPECT_TRUE(std::isnan(value)) << bits;
    } else if (magnitude == kInfinityBits<TypeParam>) {
      EXPECT_TRUE(std::isinf(value)) << bits;
    } else {
      EXPECT_EQ(double{value}, value_of<TypeParam>(bits)) << bits;
    }
    EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
  }
}

TYPED_TEST(HalfTest, ConversionGivesTheNearestValue) {
  std::mt19937 random(11);
  for (int i = 0; i < 200'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(value)) continue;
    const int bits = TypeParam(value).bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0);
    // The bits of infinity count as the next power of two, as if the format continued.
    const int magnitude = bits & 0x7fff;
    const double wanted = std::abs(double{value});
    const double here = value_of<TypeParam>(magnitude);
    if (magnitude < kInfinityBits<TypeParam>) {
      ASSERT_LE(wanted, (here + value_of<TypeParam>(magnitude + 1)) / 2) << value;
    }
    if (magnitude > 0) {
      ASSERT_GE(wanted, (here + value_of<TypeParam>(magnitude - 1)) / 2) << value;
    }
  }
}

TYPED_TEST(HalfTest, ANaNStaysANaNAndKeepsItsUpperBits) {
  const int mantissa_bits = std::is_same_v<TypeParam, Float16> ? 10 : 7;
  const int quiet = 1 << (mantissa_bits - 1);
  const auto at_the_top = std::bit_cast<float>(0xffa0'0001u);
  const int upper = 0x20'0001 >> (23 - mantissa_bits);
  EXPECT_EQ(TypeParam(at_the_top).bits, 0x8000 | kInfinityBits<TypeParam> | quiet | upper);
  const auto at_the_bottom = std::bit_cast<float>(0x7f80'0001u);
  EXPECT_EQ(TypeParam(at_the_bottom).bits, kInfinityBits<TypeParam> | quiet);
}

TYPED_TEST(HalfTest, ConversionRoundsToTheNearestAndTiesToEven) {
  for (int bits = 0; bits + 1 < kInfinityBits<TypeParam>; ++bits) {
    const auto low = static_cast<float>(from_bits<TypeParam>(bits));
    const auto high = static_cast<float>(from_bits<TypeParam>(bits + 1));
    const auto middle = static_cast<float>((double{low} + double{high}) / 2);
    const int even = bits + (bits & 1);
    EXPECT_EQ(TypeParam(middle).bits, even) << middle;
    EXPECT_EQ(TypeParam(std::nextafter(middle, low)).bits, bits) << middle;
    EXPECT_EQ(TypeParam(std::nextafter(middle, high)).bits, bits + 1) << middle;
    EXPECT_EQ(TypeParam(-middle).bits, even | 0x8000) << -middle;
  }
}

TYPED_TEST(HalfTest, AValueThatIsTooLargeBecomesInfinity) {
  const auto infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(TypeParam(infinity).bits, kInfinityBits<TypeParam>);
  EXPECT_EQ(TypeParam(std::numeric_limits<float>::max()).bits, kInfinityBits<TypeParam>);
  EXPECT_EQ(static_cast<float>(TypeParam(-infinity)), -infinity);
}

TYPED_TEST(HalfTest, ZerosKeepTheirSignAndAreEqual) {
  EXPECT_EQ(TypeParam(-0.0f).bits, 0x8000);
  EXPECT_EQ(TypeParam(-0.0f), TypeParam(0.0f));
}

TEST(Float16Test, KnownValuesHaveTheirKnownBits) {
  EXPECT_EQ(Float16(1.0f).bits, 0x3c00);
  EXPECT_EQ(Float16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Float16(65520.0f).bits, 0x7c00) << "the smallest value that rounds to infinity";
  EXPECT_EQ(Float16(0x1p-24f).bits, 0x0001) << "the smallest subnormal";
  EXPECT_EQ(Float16(0x1p-26f).bits, 0x0000);
}

}  // namespace
}  // namespace peal
