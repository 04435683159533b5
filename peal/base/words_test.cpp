// Tests the enumerations and small values of base: names, sizes, meanings.
#include <set>

#include <gtest/gtest.h>

#include "peal/base/dtype.h"
#include "peal/base/operation.h"
#include "peal/base/reduce_op.h"

namespace peal {
namespace {

template <class List>
void expect_names_of_their_own(const List& list) {
  std::set<std::string_view> names;
  for (const auto value : list) names.insert(name_of(value));
  EXPECT_EQ(names.size(), list.size());
  EXPECT_FALSE(names.contains("invalid"));
}

TEST(WordsTest, EachValueHasADifferentName) {
  expect_names_of_their_own(kAllDTypes);
  expect_names_of_their_own(kAllReduceOpKinds);
  expect_names_of_their_own(kAllCollectives);
}

TEST(WordsTest, UnknownNumbersAreInvalid) {
  EXPECT_EQ(name_of(static_cast<DType>(200)), "invalid");
  EXPECT_EQ(name_of(static_cast<ReduceOp::Kind>(200)), "invalid");
  EXPECT_EQ(name_of(static_cast<Operation>(200)), "invalid");
  EXPECT_EQ(size_of(static_cast<DType>(200)), 0_B);
  EXPECT_FALSE(has_meaning(static_cast<ReduceOp::Kind>(200), DType::kF32));
}

TEST(WordsTest, SizesMatchTheCppTypes) {
  EXPECT_EQ(size_of(dtype_of<Float16>).value, sizeof(Float16));
  EXPECT_EQ(size_of(dtype_of<BFloat16>).value, sizeof(BFloat16));
  EXPECT_EQ(size_of(dtype_of<std::int16_t>).value, sizeof(std::int16_t));
  EXPECT_EQ(size_of(dtype_of<float>).value, sizeof(float));
  EXPECT_EQ(size_of(dtype_of<double>).value, sizeof(double));
  EXPECT_EQ(size_of(dtype_of<std::complex<double>>).value, sizeof(std::complex<double>));
  EXPECT_EQ(bytes_of(Elements(std::int64_t{1} << 33), DType::kF32), Bytes(std::int64_t{1} << 35));
}

TEST(WordsTest, EachOperatorSupportsTheRightTypes) {
  using Kind = ReduceOp::Kind;
  const auto types_of = [](Kind kind) {
    int count = 0;
    for (const DType dtype : kAllDTypes) count += has_meaning(kind, dtype);
    return count;
  };
  EXPECT_EQ(types_of(Kind::kSum), 12);
  EXPECT_EQ(types_of(Kind::kMin), 10) << "complex numbers have no order";
  EXPECT_EQ(types_of(Kind::kAvg), 11) << "all but bool";
  EXPECT_EQ(types_of(Kind::kBxor), 6) << "floating numbers have no bits";
  EXPECT_TRUE(has_meaning(Kind::kPremulSum, DType::kC64));
  EXPECT_FALSE(has_meaning(Kind::kBand, DType::kF64));
}

TEST(WordsTest, ReductionsAreTheOperationsWithAnOperator) {
  int count = 0;
  for (const Operation operation : kAllCollectives) count += reduces(operation);
  EXPECT_EQ(count, 3);
}

template <class T>
concept HasDType = requires {
  dtype_of<T>;
};

TEST(WordsTest, OnlySupportedTypesHaveADType) {
  EXPECT_TRUE(HasDType<std::int64_t>);
  EXPECT_FALSE(HasDType<std::uint16_t>) << "it must not silently count as another type";
  EXPECT_FALSE(HasDType<const float>);
  EXPECT_FALSE(HasDType<long double>);
}

TEST(WordsTest, QuantitiesKeepTheirUnit) {
  Bytes size = 3_KiB + 1_B;
  size -= 1_B;
  size += 1_KiB;
  EXPECT_EQ(size, 4_KiB);
  EXPECT_EQ(1_MiB / 4_KiB, 256);
  EXPECT_EQ(2 * size / 4, 2_KiB);
  EXPECT_LT(size - 1_MiB, 0_B);
}

}  // namespace
}  // namespace peal
