// f16 and bf16 in the kernels, compared with base/half.h.

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "peal/kernels/kernels.h"
#include "peal/kernels/testing/every_target.h"
#include "peal/kernels/testing/reference.h"

namespace peal::kernels {
namespace {

class F16Bf16Test : public EveryTarget {};
INSTANTIATE_TEST_SUITE_P(Targets,
                         F16Bf16Test,
                         testing::ValuesIn(targets_of_this_cpu()),
                         target_name);

template <class Half>
std::vector<Half> every_value() {
  std::vector<Half> values(1 << 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i].bits = static_cast<std::uint16_t>(i);
  return values;
}

template <class T>
std::byte* bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

template <class Half>
void expect_scaled_values_are_rounded(double factor) {
  std::vector<Half> values = every_value<Half>();
  std::vector<Half> scaled(values.size());
  const auto count = Elements(static_cast<std::int64_t>(values.size()));
  scale(bytes(values), bytes(scaled), count, dtype_of<Half>, factor);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Half expected(
        with_canonical_nan(static_cast<float>(values[i]) * static_cast<float>(factor)));
    ASSERT_EQ(scaled[i].bits, expected.bits)
        << std::hex << values[i].bits << " gave " << scaled[i].bits << ", not " << expected.bits;
  }
}

TEST_P(F16Bf16Test, EveryHalfIsConvertedAndRoundedAsInBase) {
  // A factor of 1 shows the conversion to float; the others reach ties, subnormals and infinity.
  for (const double factor : {1.0, 0.5, 1.0 / 1024, 1.5, 1.0009765625, 0.1, -3.0, 65536.0, 1e-30}) {
    expect_scaled_values_are_rounded<Float16>(factor);
    expect_scaled_values_are_rounded<BFloat16>(factor);
  }
}

TEST_P(F16Bf16Test, AFactorOfNanGivesOnlyNans) {
  const double all_ones = std::bit_cast<double>(~std::uint64_t{0});
  for (const double factor : {std::numeric_limits<double>::quiet_NaN(), all_ones, -all_ones}) {
    expect_scaled_values_are_rounded<Float16>(factor);
    expect_scaled_values_are_rounded<BFloat16>(factor);
  }
}

/// The sum of `terms`, computed in every lane of a vector.
template <class Half>
float sum_of(const std::vector<float>& terms) {
  constexpr std::size_t kCount = 67;
  std::vector<std::vector<Half>> inputs;
  for (const float term : terms) inputs.emplace_back(kCount, Half(term));
  std::vector<const std::byte*> from;
  for (auto& input : inputs) from.push_back(bytes(input));
  std::vector<Half> sum(kCount);
  const std::array to = {bytes(sum)};
  Reducer(dtype_of<Half>, ReduceOp::Kind::kSum)(from, to, Elements(kCount));
  for (const Half value : sum) EXPECT_EQ(value.bits, sum[0].bits);
  return static_cast<float>(sum[0]);
}

TEST_P(F16Bf16Test, PartialSumsAreNotRounded) {
  // 2048 + 1 is a tie in f16 that would round back to 2048 each time.
  EXPECT_EQ(sum_of<Float16>({2048, 1, 1, 1, 1}), 2052.0f);
  EXPECT_EQ(sum_of<BFloat16>({256, 1, 1, 1, 1}), 260.0f);
}

TEST_P(F16Bf16Test, PartialSumsMayExceedTheType) {
  EXPECT_EQ(sum_of<Float16>({65504, 65504, -65504}), 65504.0f);
}

TEST_P(F16Bf16Test, TiesRoundToEven) {
  EXPECT_EQ(sum_of<Float16>({2048, 1}), 2048.0f);
  EXPECT_EQ(sum_of<Float16>({2050, 1}), 2052.0f);
  EXPECT_EQ(sum_of<BFloat16>({256, 1}), 256.0f);
  EXPECT_EQ(sum_of<BFloat16>({258, 1}), 260.0f);
}

TEST_P(F16Bf16Test, SumsBeyondTheRangeAreInfinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sum_of<Float16>({65504, 15}), 65504.0f);
  EXPECT_EQ(sum_of<Float16>({65504, 16}), infinity);
  EXPECT_EQ(sum_of<BFloat16>({3.3895314e38f, 3.3895314e38f}), infinity);
  EXPECT_TRUE(std::isnan(sum_of<Float16>({infinity, -infinity})));
}

TEST_P(F16Bf16Test, SubnormalHalvesAddExactly) {
  const float least = std::ldexp(1.0f, -24);
  EXPECT_EQ(sum_of<Float16>({least, least, least}), 3 * least);
  const float least_b = std::ldexp(1.0f, -133);
  EXPECT_EQ(sum_of<BFloat16>({least_b, least_b, least_b}), 3 * least_b);
}

}  // namespace
}  // namespace peal::kernels
