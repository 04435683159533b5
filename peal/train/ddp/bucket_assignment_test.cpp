#include "peal/train/ddp/bucket_assignment.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::train {
namespace {

using ::testing::ElementsAre;

GradientSize f32(std::int64_t count) { return {Elements(count), DType::kF32}; }

constexpr BucketCaps kCaps{100_B, 400_B};

TEST(BucketsTest, ParametersAreTakenInReverseAndABucketClosesAtItsCap) {
  const std::vector<GradientSize> gradients = {f32(50), f32(50), f32(50), f32(10), f32(15)};
  EXPECT_THAT(assign_buckets(gradients, reverse_order(gradients.size()), kCaps),
              ElementsAre(ElementsAre(4, 3), ElementsAre(2, 1), ElementsAre(0)));
}

TEST(BucketsTest, AGradientLargerThanTheCapIsNotSplit) {
  const std::vector<GradientSize> gradients = {f32(1), f32(1'000'000)};
  EXPECT_THAT(assign_buckets(gradients, reverse_order(gradients.size()), kCaps),
              ElementsAre(ElementsAre(1), ElementsAre(0)));
}

TEST(BucketsTest, EachBucketHasOneTypeAndBucketsAreInTheOrderOfCompletion) {
  const GradientSize f64{Elements(1), DType::kF64};
  const std::vector<GradientSize> gradients = {f32(1), f64, f32(1), f64};
  EXPECT_THAT(assign_buckets(gradients, reverse_order(gradients.size()), kCaps),
              ElementsAre(ElementsAre(3, 1), ElementsAre(2, 0)));
}

TEST(BucketsTest, NoGradientsMakeNoBuckets) { EXPECT_TRUE(assign_buckets({}, {}, kCaps).empty()); }

TEST(BucketsTest, EveryGradientIsInOneBucketForAnyCaps) {
  std::vector<GradientSize> gradients;
  for (int i = 0; i < 40; ++i) {
    gradients.push_back({Elements(i * i % 37), i % 3 == 0 ? DType::kBF16 : DType::kF32});
  }
  const std::vector<std::size_t> order = reverse_order(gradients.size());
  for (const Bytes cap : {0_B, 1_B, 64_B, 300_B, 1_MiB}) {
    std::multiset<std::size_t> seen;
    for (const auto& bucket : assign_buckets(gradients, order, {cap, cap})) {
      for (const std::size_t index : bucket) {
        EXPECT_EQ(gradients[index].dtype, gradients[bucket.front()].dtype);
        seen.insert(index);
      }
    }
    EXPECT_EQ(seen.size(), gradients.size());
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), gradients.size());
  }
}

}  // namespace
}  // namespace peal::train
