#include "peal/base/half.h"

#include <cmath>
#include <limits>

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

TYPED_TEST(HalfTest, EveryValueSurvivesTheWayToFloatAndBack) {
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

TYPED_TEST(HalfTest, WhatIsTooLargeBecomesInfinity) {
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
  EXPECT_EQ(Float16(65520.0f).bits, 0x7c00) << "the first that rounds to infinity";
  EXPECT_EQ(Float16(0x1p-24f).bits, 0x0001) << "the smallest subnormal";
  EXPECT_EQ(Float16(0x1p-26f).bits, 0x0000);
}

}  // namespace
}  // namespace peal
